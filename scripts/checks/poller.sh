# The poller in the Lambda emulator: moto gives S3, SQS, EventBridge and Secrets Manager, and the registry has TLS and a
# password. The part minio has the bucket in MinIO instead. The tests of functions/poller have what each event does.
# shellcheck shell=bash

PLACE=s3://mirror/poller
SOURCE=$REGISTRY/ns/poller:v1
EVENTS=$ROOT/functions/poller/tests/events

# What the service's client says to moto.
service() { env -u AWS_CA_BUNDLE aws --endpoint-url "$MOTO_URL" --region us-east-1 --output json "$@"; }
messages() { service sqs receive-message --queue-url "$1" --max-number-of-messages 10 --visibility-timeout 0 | jq -c '[.Messages // [] | .[].Body | fromjson]'; }

# What the function finds around it.
surroundings() {
  start_s3 moto
  MOTO_URL=$S3_URL
  make_bucket mirror
  make_bucket config
  service secretsmanager create-secret --name pull --secret-string "file://$AUTH_FILE" >/dev/null
  QUEUE=$(service sqs create-queue --queue-name changed.fifo --attributes FifoQueue=true | jq -r .QueueUrl)
  HEARD=$(service sqs create-queue --queue-name heard | jq -r .QueueUrl)
  service events put-rule --name changes --event-pattern '{"source": ["catalog-mirror"]}' >/dev/null
  service events put-targets --rule changes --targets Id=1,Arn=arn:aws:sqs:us-east-1:123456789012:heard >/dev/null
}

# configure NAME...: catalogs.yaml, with each name at the one source.
configure() {
  local name
  {
    printf 'registries: {caFiles: ["%s"]}\ncatalogs:\n' "$REGISTRY_CA"
    for name in "$@"; do printf -- '- {name: %s, source: "%s"}\n' "$name" "$SOURCE"; done
  } >"$WORK/catalogs.yaml"
  put_config "$WORK/catalogs.yaml"
}
put_config() { s3_curl -f -T "$1" /config/catalogs.yaml; }

# start_poller [VARIABLE=VALUE...]: in place of the one before. The emulator hands events only to a program's own name.
start_poller() {
  if [[ -n ${FUNCTION_PID:-} ]]; then kill "$FUNCTION_PID" 2>/dev/null && wait "$FUNCTION_PID" || true; fi
  start_function poller poller STORE="$PLACE" CATALOGS=s3://config/catalogs.yaml PULL_SECRETS=pull AWS_ENDPOINT_URL="$MOTO_URL" \
    AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID="$S3_KEY" AWS_SECRET_ACCESS_KEY="$S3_SECRET" "$@"
}

# ask JSON FILTER: invokes with an event, prints what jq finds in the answer.
ask() {
  printf '%s' "$1" >"$WORK/event.json"
  invoke poller "$WORK/event.json" 2>&1 | jq -rc "$2" 2>&1
}
event() { cat "$EVENTS/$1.json"; }
OUTCOMES='[.reports[] | "\(.catalog) \(.outcome)"] | join(", ")'
current() { s3_object "$PLACE" "catalogs/$1/current.json"; }

directly() {
  configure good
  start_poller EVENT_BUS=default
  is "a schedule event publishes" "$(ask "$(event schedule)" "$OUTCOMES")" "good published"
  is "the second finds nothing new" "$(ask '{}' "$OUTCOMES")" "good unchanged"
  copy_image "oci:$LAYOUT:step-001" "docker://$SOURCE"
  is "an update is published" "$(ask "$(event scheduler)" "$OUTCOMES")" "good published"
  is "EventBridge heard of every publication" "$(messages "$HEARD" | jq -rc '[.[].detail.data.serial] | sort | join(" ")')" "1 2"
  matches "a log line has the request's id" "$(grep '"message":"polled catalog"' "$FUNCTION_LOG" | head -1)" '"request_id":"[0-9a-f-]+"'
  matches "metrics are log lines" "$(grep -c '"Namespace":"CatalogMirror"' "$FUNCTION_LOG")" '^[2-9]$'
  # Another mirror of the account has the same names of metrics and of catalogs.
  is "each of them belongs to this function" "$(grep '"Namespace":"CatalogMirror"' "$FUNCTION_LOG" |
    jq -rc '[.FunctionName, (._aws.CloudWatchMetrics[].Dimensions[] | index("FunctionName"))] | join(" ")' | sort -u)" "poller 0"
  is "no secret is in the log" "$(grep -c "$REGISTRY_PASSWORD\|$S3_SECRET" "$FUNCTION_LOG")" 0
}

by_queue() {
  configure good other
  start_poller QUEUE_URL="$QUEUE"
  is "with a queue only the digests are resolved" "$(ask '{}' '"\(.queued | join(" ")); \([.reports[].catalog] | join(" "))"')" "other; good"
  is "and a message is sent" "$(messages "$QUEUE" | jq -c '[.[].catalog]')" '["other"]'
  is "which a FIFO queue takes only once" "$(ask '{}' '.queued | join(" ")') $(messages "$QUEUE" | jq -c '[.[].catalog]')" 'other ["other"]'
  is "a queue event publishes, and reports what failed" \
    "$(ask "$(event queue | sed 's/no-longer-configured/other/')" '[.batchItemFailures[].itemIdentifier] | join(" ")')" \
    "7c9e6679-7425-40de-944b-e07fc1f90ae7"
  is "the others are published" "$(current other | jq -r .serial)" 1
}

# Configuration and objects in MinIO; secrets and events stay with moto.
over_minio() {
  start_s3 minio tls
  make_bucket mirror
  make_bucket config
  copy_image "oci:$LAYOUT:step-000" "docker://$SOURCE"
  configure good
  start_poller AWS_ENDPOINT_URL_S3="$S3_URL" AWS_CA_BUNDLE="$S3_CA"
  is "over MinIO a schedule event publishes" "$(ask "$(event schedule)" "$OUTCOMES")" "good published"
  is "the next finds nothing new" "$(ask '{}' "$OUTCOMES")" "good unchanged"
  copy_image "oci:$LAYOUT:step-001" "docker://$SOURCE"
  configure good other
  is "a queue event publishes an update" \
    "$(ask "$(event queue)" '[.batchItemFailures[].itemIdentifier] | join(" ")') $(current good | jq -r .serial)" \
    "7c9e6679-7425-40de-944b-e07fc1f90ae7 2"
}

copy_image "oci:$LAYOUT:step-000" "docker://$SOURCE"
surroundings
start_emulator
if [[ ${S3_SERVER:-moto} == minio ]]; then
  over_minio
else
  directly
  by_queue
fi
