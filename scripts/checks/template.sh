# The AWS template: the linters accept it, its resources are what infra/aws/README.md says, and the scripts deploy and delete it in moto.
# The part sam builds it and has checkov scan it.
# shellcheck shell=bash

AWS=$ROOT/infra/aws
TEMPLATE=$AWS/template.yaml
RESOURCES=$WORK/resources.json
HASH=$(printf 'a%.0s' {1..64})
STACK=catalog-mirror
SECRETS=arn:aws:secretsmanager:us-east-1:123456789012:secret:a,arn:aws:secretsmanager:us-east-1:123456789012:secret:b
PARAMETERS=("AlarmEmail=ops@example.com" "PullSecretArns=$SECRETS" "EventBusName=default" "PollMetrics=catalog")
CDN=arn:aws:cloudfront::123456789012:distribution/Distribution
BEHAVIORS='.DistributionConfig | .DefaultCacheBehavior, .CacheBehaviors[]'

linters() {
  local script number
  # This runs cfn-lint too.
  succeeds "sam validate --lint accepts it" sam validate --lint --region us-east-1 --template "$TEMPLATE"
  is "every check that checkov skips has its reason" \
    "$(grep -A1 '^  # ' "$AWS/.checkov.yaml" | grep -c '^  - CKV')" "$(grep -c '^  - CKV' "$AWS/.checkov.yaml")"
  for script in build deploy invoke teardown; do
    matches "scripts/$script --help shows the usage" "$("$ROOT/scripts/$script" --help)" "scripts/$script "
  done
  is "the cost page is what scripts/cost prints" "$(sed -n '/^<!-- cost -->$/,/^<!-- end -->$/p' "$ROOT/infra/COST.md" | grep -v '^<!--')" "$("$ROOT/scripts/cost")"
  for number in clusters=abc clusters= clusters=nan clusters=-1 clusters=1e308 interval=0 whole=2 plan=7; do
    fails "scripts/cost says what is wrong with $number" 'cost: [a-z]+ is (a number from|one of)' "$ROOT/scripts/cost" "$number"
  done
}

# The stacks that are looked at, by the parameters of each. CloudFormation takes 4,096 bytes for a parameter.
stacks() {
  local of_secret
  of_secret=$(printf 'Bearer secret' | sha256)
  cat <<EOF
resources ${PARAMETERS[*]}
plain
europe AWS::Region=eu-central-1
hoarding CollectGarbage=false
slow-300 PollerTimeout=300
slow-600 PollerTimeout=600
slow-900 PollerTimeout=900
public Public=true
closed AccessHashes=$HASH,$of_secret
closed-with-origin AccessHashes=$HASH Origins=https://docs.lab
closed-full AccessHashes=$(printf "$HASH,%.0s" {1..62})$HASH Origins=$(printf 'https://%088d,' {1..42})
EOF
}

# resolve: the resources of each stack, as JSON; a resource is named as in the template.
resolve() { stacks | sed 's/$/ Bucket=bucket/' | "$VENV/bin/python" "$LIB/template.py" resolve "$TEMPLATE" "$WORK"; }

# property NAME FILTER: of the properties of a resource; of_type TYPE FILTER: of those of each resource of a type.
property() { jq -rc --arg name "$1" ".[\$name].Properties | $2" "$RESOURCES"; }
of_type() { jq -rc --arg type "AWS::$1" "to_entries[] | select(.value.Type == \$type) | .key as \$name | .value.Properties | $2" "$RESOURCES"; }

bucket() {
  is "the bucket blocks all public access" "$(property Bucket '.PublicAccessBlockConfiguration | [length, all(.[]; .)]')" '[4,true]'
  is "it has no access lists" "$(property Bucket '.OwnershipControls.Rules[].ObjectOwnership')" BucketOwnerEnforced
  is "it is versioned" "$(property Bucket .VersioningConfiguration.Status)" Enabled
  is "its encryption keeps ETags hashes of the content" "$(property Bucket '.BucketEncryption | [.. | .SSEAlgorithm? // empty]')" '["AES256"]'
  is "replaced versions expire" \
    "$(property Bucket '[.LifecycleConfiguration.Rules[] | .NoncurrentVersionExpiration.NoncurrentDays]')" '["7"]'
  is "it outlives the stack, but not a first deployment that fails" "$(sed -n '/^  Bucket:$/,/Properties/s/^    \(.*Policy: .*\)/\1/p' "$TEMPLATE" | paste -sd' ')" \
    "DeletionPolicy: RetainExceptOnCreate UpdateReplacePolicy: Retain"
}

# Each line: the expected answer, the action, the key, and fields of the request. A pointer is never put without a condition.
bucket_policy() {
  local object=Bucket.Arn/mirror cdn="principal=cloudfront.amazonaws.com AWS:SourceArn=$CDN" key
  {
    for key in catalogs.json catalogs/v4.20/current.json gc.json; do
      printf '%s\n' "Deny s3:PutObject $object/$key" "None s3:PutObject $object/$key s3:if-match=x" \
        "None s3:PutObject $object/$key s3:if-none-match=*" "None s3:GetObject $object/$key $cdn"
    done
    # A writer may replace a damaged object, because the name of an object says which bytes are right.
    immutable_keys | while read -r key; do
      printf '%s\n' "None s3:PutObject $object/$key" "None s3:DeleteObject $object/$key" "None s3:GetObject $object/$key ${cdn}x" \
        "None s3:GetObject $object/$key principal=someone" "None s3:PutObject $object/$key $cdn"
    done
    immutable_keys | grep -v ^garbage/ | sed "s|.*|Allow s3:GetObject $object/& $cdn|"
    cat <<EOF
None s3:PutObject $object/catalogs/v4.20/status.json
None s3:PutObject $object/catalogs/v4.20/notified.json
None s3:PutObject $object/.conditional-writes
None s3:GetObject $object/catalogs/v4.20/status.json $cdn
None s3:GetObject $object/garbage/sha256/$HASH.json.zst $cdn
Deny s3:GetObject $object/catalogs.json aws:SecureTransport=false
Deny s3:GetObject $object/catalogs.json aws:SecureTransport=true s3:TlsVersion=1.1
None s3:GetObject $object/catalogs.json aws:SecureTransport=true s3:TlsVersion=1.2
EOF
  } | answers BucketPolicy
}

# One key of each kind of immutable object.
immutable_keys() {
  printf '%s\n' "all/sha256/$HASH.json.gz" "packages/sha256/$HASH.json.zst" "snapshots/sha256/$HASH.json.zst" \
    "indexes/sha256/$HASH.json.zst" "facts/sha256/$HASH.json.zst" "garbage/sha256/$HASH.json.zst" "blobs/sha256/$HASH"
}

# answers POLICY <TABLE: what a policy says to each request; the table has the answer before the request.
answers() {
  local table requests
  table=$(cat)
  requests=$(cut -d' ' -f2- <<<"$table")
  property "$1" .PolicyDocument >"$WORK/policy.json"
  same_lines "$1 answers all $(wc -l <<<"$table") requests" \
    "$("$VENV/bin/python" "$LIB/policy.py" "$WORK/policy.json" <<<"$requests" | paste -d' ' - <(cat <<<"$requests"))" "$table"
}

# Collection deletes immutable objects only, and no older versions.
roles() {
  local logs=arn:aws:logs:us-east-1:123456789012:log-group
  same_lines "each role may do this, and nothing else" \
    "$(of_type IAM::Role '.Policies[].PolicyDocument.Statement[] | .Effect as $effect | .Condition as $condition | ([.Resource] | flatten[]) as $where
      | ([.Action] | flatten[]) | "\($name) \($effect) \(.) \($where)\($condition // "")"')" \
    "ReaderRole Allow s3:GetObject Bucket.Arn/mirror/*
ReaderRole Allow s3:ListBucket Bucket.Arn
ReaderRole Allow logs:CreateLogStream $logs:ReaderLogs:*
ReaderRole Allow logs:PutLogEvents $logs:ReaderLogs:*
SchedulerRole Allow lambda:InvokeFunction Poller.Arn
SchedulerRole Allow sqs:SendMessage DeadLetters.Arn
PollerRole Allow s3:GetObject Bucket.Arn/config/catalogs.yaml
PollerRole Allow s3:GetObject Bucket.Arn/mirror/*
PollerRole Allow s3:PutObject Bucket.Arn/mirror/*
$(immutable_keys | sed "s|\(.*\)/.*|PollerRole Allow s3:DeleteObject Bucket.Arn/mirror/\1/*|")
PollerRole Allow s3:ListBucket Bucket.Arn
PollerRole Allow sqs:SendMessage Queue.Arn
PollerRole Allow sqs:ReceiveMessage Queue.Arn
PollerRole Allow sqs:DeleteMessage Queue.Arn
PollerRole Allow sqs:GetQueueAttributes Queue.Arn
PollerRole Allow logs:CreateLogStream $logs:PollerLogs:*
PollerRole Allow logs:PutLogEvents $logs:PollerLogs:*
PollerRole Allow secretsmanager:GetSecretValue ${SECRETS%,*}
PollerRole Allow secretsmanager:GetSecretValue ${SECRETS#*,}
PollerRole Allow events:PutEvents arn:aws:events:us-east-1:123456789012:event-bus/default"
  is "no role has a managed policy" "$(of_type IAM::Role '.ManagedPolicyArns // empty')" ''
  same_lines "the functions run as their roles" "$(of_type Lambda::Function '"\($name) \(.Role)"')" $'Poller PollerRole.Arn\nReader ReaderRole.Arn'
}

# schedules: `EXPRESSION STATE INPUT FUNCTION ROLE` of each.
schedules() {
  of_type Scheduler::Schedule '"\(.ScheduleExpression) \(.State // "ENABLED") \(.Target | "\(.Input | fromjson) \(.Arn) \(.RoleArn)")"'
}

triggers() {
  local target='Poller.Arn SchedulerRole.Arn' polls collects seconds
  polls="rate(10 minutes) ENABLED {} $target"
  collects="$(jq -c . "$ROOT/functions/poller/tests/events/manual-gc.json") $target"
  same_lines "the poller polls in the interval, and collects garbage every 30 minutes" "$(schedules)" "$polls"$'\n'"rate(30 minutes) ENABLED $collects"
  same_lines "unless a parameter forbids it" "$(RESOURCES=$WORK/hoarding.json schedules)" "$polls"$'\n'"rate(30 minutes) DISABLED $collects"
  is "and then no alarm waits for it" "$(jq -c '[has("FailedCollectionAlarm"), has("StuckCollectionAlarm")]' "$WORK/hoarding.json")" '[false,false]'
  is "messages of the queue fail one by one, and two are taken at a time" \
    "$(of_type Lambda::EventSourceMapping '[.EventSourceArn, .FunctionName, .FunctionResponseTypes, .ScalingConfig.MaximumConcurrency]')" \
    '["Queue.Arn","Poller",["ReportBatchItemFailures"],"2"]'
  is "three failures are enough" "$(property Queue .RedrivePolicy.maxReceiveCount)" 3
  for seconds in 300 600 900; do
    is "a message is hidden for six times as long as a poll may take, $seconds s" \
      "$(RESOURCES=$WORK/slow-$seconds.json property Poller .Timeout) $(RESOURCES=$WORK/slow-$seconds.json property Queue .VisibilityTimeout)" "$seconds $((6 * seconds))"
  done
  answers QueuePolicy <<<$'Deny sqs:SendMessage Queue.Arn aws:SecureTransport=false\nNone sqs:SendMessage Queue.Arn aws:SecureTransport=true'
  is "both queues are encrypted" "$(of_type SQS::Queue .SqsManagedSseEnabled)" $'true\ntrue'
}

# Calls from outside: the CDN may call the reader, and not past its URL. Nothing may call the poller.
entry_points() {
  is "the reader alone has a URL, which wants a signature" "$(of_type Lambda::Url '[.TargetFunctionArn, .AuthType]')" '["Reader","AWS_IAM"]'
  same_lines "only the CDN may call the reader, and nothing else a function" \
    "$(of_type Lambda::Permission '"\(.FunctionName) \(.Action) \(.InvokedViaFunctionUrl) \(.Principal) \(.SourceArn)"')" \
    "Reader lambda:InvokeFunctionUrl null cloudfront.amazonaws.com $CDN
Reader lambda:InvokeFunction true cloudfront.amazonaws.com $CDN"
}

# takes_environment NAME PROGRAM: a function that cannot use its environment says so at once, and one that can waits for
# a service that is not there.
takes_environment() {
  local variables said
  mapfile -t variables < <(property "$1" '.Environment.Variables | to_entries[] | "\(.key)=\(.value)"')
  use_function "$2"
  said=$(timeout 5 env -i PATH="$PATH" "${variables[@]}" AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test \
    AWS_SECRET_ACCESS_KEY=test AWS_LAMBDA_RUNTIME_API=127.0.0.1:1 AWS_LAMBDA_FUNCTION_NAME="$2" \
    AWS_LAMBDA_FUNCTION_VERSION=1 AWS_LAMBDA_FUNCTION_MEMORY_SIZE="$(property "$1" .MemorySize)" "$FUNCTION" 2>&1 || true)
  is "the $2 can use what the template gives it" "$(grep -E 'invalid environment|cannot be used' <<<"$said")" ""
}

# A name that a function does not know would be a setting that is ignored.
settings() {
  local function name folder
  for function in Poller Reader; do
    folder=$AWS/$(sed -n "/^  $function:$/,/^\$/s/^ *CodeUri: //p" "$TEMPLATE")
    for name in $(property $function '.Environment.Variables | keys[]' | grep -v -e RUST_LOG -e MALLOC_ARENA_MAX); do
      succeeds "the ${function,} knows $name" grep -rqw "$name" "$folder/src"
    done
    takes_environment "$function" "${function,}"
    is "its logs are kept for a while" "$(property "$(property $function .LoggingConfig.LogGroup)" .RetentionInDays)" 30
  done
}

alarms() {
  local metric watched metrics='(., .Metrics[]?.MetricStat?.Metric?) | select(.MetricName?)'
  same_lines "the alarms" "$(of_type CloudWatch::Alarm '$name')" \
    "$(printf '%sAlarm\n' NoPoll FailedPolls FailedCollection StuckCollection PollerErrors DeadLetters ReaderErrors CdnErrors)"
  is "silence is an alarm" "$(property NoPollAlarm '[.TreatMissingData, .Period, .EvaluationPeriods]')" '["breaching",600,"3"]'
  is "two hours without a successful collection are an alarm" "$(property FailedCollectionAlarm '[.Period, .Statistic, .Threshold]')" '[7200,"Minimum",0]'
  is "a state of collection that lasts a day is an alarm" "$(property StuckCollectionAlarm '[.Metrics[0].Expression, .Threshold]')" '["IF(state > 0, age, 0)",86400]'
  is "each tells the topic" "$(of_type CloudWatch::Alarm .AlarmActions | sort -u)" '["AlarmTopic"]'
  watched=$(of_type CloudWatch::Alarm "$metrics | select(.Namespace == \"CatalogMirror\").MetricName")
  same_lines "the poller writes by default what the alarms watch" "$(sed -n '/^const ALARMS/,/^];/s/^ *"\(.*\)",$/\1/p' "$ROOT/functions/poller/src/metrics.rs")" "$watched"
  is "the cost page counts the watched metrics, of the mirror and of AWS" \
    "$(sed -n 's/^METRICS = //p; s/^ALARMS = //p' "$ROOT/scripts/cost" | paste -sd' ')" \
    "$(wc -l <<<"$watched") $(of_type CloudWatch::Alarm "$metrics | 1" | wc -l)"
  for metric in $(property Dashboard .DashboardBody | jq -r '.widgets[].properties.metrics | select(.[0][0] == "CatalogMirror")[][1]') LastSuccessAge; do
    succeeds "the poller writes $metric" grep -rqw "$metric" "$ROOT/functions/poller/src"
  done
  succeeds "the dashboard is JSON" jq -e '.widgets | length > 0' <<<"$(property Dashboard .DashboardBody)"
  # The metrics of two mirrors in one account and region have one namespace.
  same_lines "each alarm sees this stack alone" "$(of_type CloudWatch::Alarm "[$metrics | .Dimensions // [] | map(\"\(.Name)=\(.Value)\") | join(\" \")]
    | unique[] | \"\(\$name) \(.)\"")" "$(printf '%sAlarm FunctionName=Poller\n' NoPoll FailedPolls FailedCollection StuckCollection PollerErrors)
DeadLettersAlarm QueueName=DeadLetters.QueueName
ReaderErrorsAlarm FunctionName=Reader
CdnErrorsAlarm DistributionId=Distribution Region=Global"
  is "and so does each metric of the dashboard" "$(property Dashboard .DashboardBody | jq -c '.widgets[].properties.metrics[]
    | select(([.[] | strings] | length < 4) and (tostring | contains("FunctionName=\\\"Poller") | not))')" ""
  is "by default there is no dashboard" "$(jq 'has("Dashboard")' "$WORK/plain.json")" false
  is "without an address no alarm is sent" "$(RESOURCES=$WORK/plain.json of_type CloudWatch::Alarm '.AlarmActions // empty')" ''
  # The reader answers 503 as an answer, which is no error of its function.
  is "in every region an alarm counts the reader's 5xx" \
    "$(RESOURCES=$WORK/europe.json property ReaderErrorsAlarm '[.Metrics[].MetricStat.Metric.MetricName // empty]')" '["Url5xxCount","Throttles","UrlRequestCount"]'
  is "the CDN's alarm is only where its metrics are" "$(jq -c '[has("CdnErrorsAlarm"), has("NoPollAlarm")]' "$WORK/europe.json")" '[false,true]'
}

# tests/e2e/template.rs compares the behaviours with the routes and the kinds of objects.
cdn() {
  is "the CDN compresses nothing and speaks TLS" \
    "$(property Distribution "[$BEHAVIORS | [.Compress, .ViewerProtocolPolicy]] | unique")" '[[false,"redirect-to-https"]]'
  is "each origin has its access control" "$(property Distribution '[.DistributionConfig.Origins[].OriginAccessControlId]')" '["ReaderAccess","BucketAccess"]'
  is "the mirror's prefix is all of the bucket that it sees" "$(property Distribution '.DistributionConfig.Origins[1].OriginPath')" /mirror
  cache_policies
  is "pages of all origins may read" "$(allowed_origins)" '["*"]'
  is "anyone may read, so the poller refuses private catalogs" \
    "$(property Poller .Environment.Variables.PUBLISH_PRIVATE) $(jq 'has("Access")' "$RESOURCES")" "false false"
}

allowed_origins() { property TransportHeaders .ResponseHeadersPolicyConfig.CorsConfig.AccessControlAllowOrigins.Items; }

# access REQUEST: status and allowed origin of the answer of the CDN's function, run as CloudFront runs it; 0 if the request passes.
access() {
  property Access .FunctionCode >"$WORK/access.js"
  cat >>"$WORK/access.js" <<'JS'
const {statusCode = 0, headers} = handler({request: JSON.parse(process.argv[2])})
console.log(statusCode, headers['access-control-allow-origin']?.value ?? 'none')
JS
  node "$WORK/access.js" "$1"
}

# with_login VALUE, preflight ORIGIN: requests for `access`.
with_login() { jq -nc --arg value "$1" '{headers: {authorization: {value: $value}}}'; }
preflight() { jq -nc --arg value "$1" '{method: "OPTIONS", headers: {origin: {value: $value}}}'; }

closed_mirror() {
  local RESOURCES=$WORK/public.json
  is "private catalogs are published if that is wanted" "$(property Poller .Environment.Variables.PUBLISH_PRIVATE)" true
  RESOURCES=$WORK/closed.json
  is "and by a mirror that is closed" "$(property Poller .Environment.Variables.PUBLISH_PRIVATE)" true
  is "every path of it asks for a login" "$(property Distribution "[$BEHAVIORS | .FunctionAssociations[0].EventType] | unique")" '["viewer-request"]'
  is "the right login passes" "$(access "$(with_login 'Bearer secret')")" '0 none'
  is "a wrong one does not" "$(access "$(with_login 'Bearer Secret')")" '401 none'
  is "nor does a hash" "$(access "$(with_login "$(printf 'Bearer secret' | sha256)")")" '401 none'
  is "nor does none" "$(access '{"headers": {}}')" '401 none'
  is "pages of no other origin may read" "$(allowed_origins)" null
  RESOURCES=$WORK/closed-with-origin.json
  is "but of those that are named" "$(allowed_origins)" '["https://docs.lab"]'
  is "whose scripts may send a login" "$(access "$(preflight https://docs.lab)")" '204 https://docs.lab'
  is "as those of others may not" "$(access "$(preflight https://other.lab)")" '204 none'
  RESOURCES=$WORK/closed-full.json
  # CloudFront takes 10 KB for a function ("Quotas").
  succeeds "the function fits with as many logins and origins as a parameter takes" test "$(property Access .FunctionCode | wc -c)" -le 10240
}

# Shortest time, time without a word of the origin, longest time; headers, cookies and query of the key, and no coding made by the CDN.
cache_policies() {
  same_lines "the cache policies leave codings and times to the origin, but five minutes for what programs ask for" \
    "$(of_type CloudFront::CachePolicy '.CachePolicyConfig | .ParametersInCacheKeyAndForwardedToOrigin as $key
      | [$name, .MinTTL, .DefaultTTL, .MaxTTL, ($key | .HeadersConfig.Headers // [], .CookiesConfig.CookieBehavior,
        .QueryStringsConfig.QueryStringBehavior, .EnableAcceptEncodingGzip, .EnableAcceptEncodingBrotli)]')" \
    '["NegotiatedCache",0,0,31536000,["Accept-Encoding"],"none","none",false,false]
["AskedCache",300,300,31536000,["Accept-Encoding"],"none","none",false,false]
["QueriedCache",0,0,31536000,["Accept-Encoding"],"none","all",false,false]
["ImmutableCache",0,0,31536000,[],"none","none",false,false]'
  is "scripts/cost counts with that" "$(sed -n "s/^AWS_MINUTES = //p" "$ROOT/scripts/cost")" 5
  is "these are the hash and the pointer" "$(property Distribution '[.DistributionConfig.CacheBehaviors[] | select(.CachePolicyId == "AskedCache") | .PathPattern]')" \
    '["/catalogs/*/content-hash","/catalogs/*/current.json"]'
}

# echo_events true|false: whether moto answers invocations with the event instead of running containers. While it does,
# it knows no functions.
echo_events() {
  local run=true
  [[ $1 == false ]] || run=false
  curl -sf -d "{\"lambda\": {\"use_docker\": $run}}" "$AWS_ENDPOINT_URL/moto-api/config" >/dev/null
}

# stand_in NAME <SCRIPT: a program of that name is found before the real one, whose path is $REAL in the script.
stand_in() {
  local real
  real=$(type -P "$1" || true)
  { printf '#!/usr/bin/env bash\nREAL=%q\n' "$real" && cat; } >"$WORK/bin/$1"
  chmod +x "$WORK/bin/$1"
}

# parameter NAME, variable NAME: of the stack, and of its functions.
parameter() { aws cloudformation describe-stacks --stack-name "$STACK" | jq -r --arg name "$1" '.Stacks[0].Parameters[] | select(.ParameterKey == $name).ParameterValue'; }
variable() { aws lambda list-functions | jq -r --arg name "$1" '.Functions[].Environment.Variables[$name] // empty'; }

# What `sam build` does is a part of its own. Here it only says what it was asked for.
builds() {
  local script=$ROOT/scripts keys='MCowBQYDK2VwAyEAold=, MCowBQYDK2VwAyEAnew=' origins='https://docs.example, https://wiki.example'
  local more=(--no-poll --artifacts functions "SigningKeyArns=" "PullSecretArns=$SECRETS")
  mkdir "$WORK/bin"
  stand_in sam <<<'[[ $1 == build ]] || exec "$REAL" "$@"
    printf "%s\n" "$@" >"$WORK/build"
    cp -r "$WORK/reduced/." "$(sed -n "/^--build-dir/{n;p}" "$WORK/build")"'
  stand_in rustup <<<'echo "$*" >"$WORK/rustup"'
  (
    export PATH=$WORK/bin:$PATH CARGO_TARGET_DIR=$WORK/target
    mkdir -p "$CARGO_TARGET_DIR/sam"
    succeeds "scripts/deploy takes two keys and two origins" "$script/deploy" "${more[@]}" Architecture=x86_64 "VerifyKeys=$keys" "Origins=$origins"
    succeeds "and changes another parameter later" "$script/deploy" "${more[@]}" "Origins=$origins" ReaderMemory=512
  )
  is "it builds for the processor that the stack has" "$(grep ^Architecture= "$WORK/build") $(grep -o 'x86_64.*' "$WORK/rustup")" \
    'Architecture="x86_64" x86_64-unknown-linux-gnu'
  is "the functions stay on it" "$(parameter Architecture) $(aws lambda list-functions | jq -c '[.Functions[].Architectures[]]')" 'x86_64 ["x86_64","x86_64"]'
  is "the reader has both keys" "$(variable VERIFY_KEYS)" "$keys"
  # moto writes a list as Python does.
  is "the stack has both origins" "$(parameter Origins | tr -d "[]' ")" "${origins// /}"
  mkdir -p "$WORK/other/Poller"
  printf '\x7fELF%014d\xb7\0' 0 >"$WORK/other/Poller/bootstrap"
  stand_in sam <<<'echo "SAM CLI, version 1.148.0"'
  fails "a sam that would ask before it builds is refused" "sam on the path is 1.148.0, and 1.[0-9.]* or later is needed" \
    env PATH="$WORK/bin:$PATH" "$script/deploy" "${more[@]}"
  rm "$WORK/bin/sam"
  fails "what was built for another processor is not deployed" "bootstrap is no program for x86_64" "$script/deploy" "${more[@]}" --built "$WORK/other"
}

# A stack whose first deployment failed has no outputs. moto does not roll back, so its state is written into the answers of the CLI.
failed_deployment() {
  local script=$ROOT/scripts
  jq -n '{Resources: {Bucket: {Type: "AWS::S3::Bucket", DeletionPolicy: "Retain", Properties: {BucketName: "left"}}}}' >"$WORK/failed.json"
  aws cloudformation create-stack --stack-name failed --template-body "file://$WORK/failed.json" >/dev/null
  stand_in aws <<<'set -o pipefail; "$REAL" "$@" | sed "s/\"CREATE_COMPLETE\"/\"ROLLBACK_COMPLETE\"/"'
  fails "scripts/deploy says what a failed stack needs" "is in the state ROLLBACK_COMPLETE, .*scripts/teardown --stack failed" \
    env PATH="$WORK/bin:$PATH" "$script/deploy" --stack failed --built "$WORK/reduced" --artifacts functions
  matches "scripts/teardown deletes it" "$(PATH=$WORK/bin:$PATH code_of "$script/teardown" --stack failed --yes) $(<"$WORK/said")" '^0 .*--bucket left deletes it'
  is "and it is gone" "$(aws cloudformation list-stacks | jq -r '.StackSummaries[] | select(.StackName == "failed").StackStatus')" DELETE_COMPLETE
  jq '.Resources.Bucket |= del(.DeletionPolicy)' "$WORK/failed.json" >"$WORK/empty.json"
  aws s3 rb s3://left >/dev/null
  aws cloudformation create-stack --stack-name failed --template-body "file://$WORK/empty.json" >/dev/null
  is "and where it took its bucket away, no bucket is named" "$("$script/teardown" --stack failed --yes --delete-data 2>&1 | tail -1)" "no bucket is left"
  jq '.Outputs = {Url: {Value: "other"}}' "$WORK/empty.json" >"$WORK/foreign.json"
  aws cloudformation create-stack --stack-name foreign --template-body "file://$WORK/foreign.json" >/dev/null
  fails "a stack of something else stays" "is it one of infra/aws" "$script/teardown" --stack foreign --yes
  fails "and there must be one" "there is no stack none" "$script/teardown" --stack none --yes
}

# The scripts, against what of the template moto's CloudFormation makes.
scripts() {
  local script=$ROOT/scripts bucket
  start_s3 moto
  unset AWS_ENDPOINT_URL_S3 AWS_CA_BUNDLE
  # By this name moto finds templates in its own S3, as sam uploads them.
  export AWS_ENDPOINT_URL=${S3_URL/127.0.0.1/localhost} AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
  mkdir "$WORK/reduced"
  "$VENV/bin/python" "$LIB/template.py" reduce "$TEMPLATE" >"$WORK/reduced/template.yaml" 2>/dev/null
  touch "$WORK/bootstrap"
  python3 -m zipfile -c "$WORK/function.zip" "$WORK/bootstrap"
  aws s3 mb s3://functions >/dev/null
  aws s3 cp --quiet "$WORK/function.zip" s3://functions/function.zip
  printf 'catalogs: [{name: a, source: "quay.io/example/catalog:latest"}]\n' >"$WORK/catalogs.yaml"
  printf '# ours\nReaderMemory=256 # small\n' >"$WORK/parameters"
  printf '%s\n' "${PARAMETERS[@]}" >>"$WORK/parameters"
  # Stacks that moto makes of a set of changes have no outputs.
  aws cloudformation create-stack --stack-name "$STACK" --template-body "file://$WORK/reduced/template.yaml" >/dev/null
  succeeds "scripts/deploy changes the stack" "$script/deploy" --no-poll --built "$WORK/reduced" --artifacts functions \
    --parameters "$WORK/parameters" --catalogs "$WORK/catalogs.yaml" PollerMemory=1024
  is "with the given sizes" "$(aws lambda list-functions | jq -c '[.Functions[].MemorySize] | sort')" '[256,1024]'
  bucket=$(aws cloudformation describe-stack-resource --stack-name "$STACK" --logical-resource-id Bucket | jq -r .StackResourceDetail.PhysicalResourceId)
  is "the configuration is uploaded" "$(aws s3 cp --quiet "s3://$bucket/config/catalogs.yaml" -)" "$(cat "$WORK/catalogs.yaml")"
  builds
  echo_events true
  is "invoke tick" "$("$script/invoke" tick | jq -c .)" '{}'
  is "invoke poll" "$("$script/invoke" poll --force a b | jq -c .)" '{"action":"poll","catalogs":["a","b"],"force":true}'
  is "invoke gc" "$("$script/invoke" gc --dry-run | jq -c .)" '{"action":"gc","dryRun":true}'
  is "invoke rollback" "$("$script/invoke" rollback --unverified --content-hash "$HASH" a | jq -c .)" \
    "{\"action\":\"rollback\",\"catalogs\":[\"a\"],\"unverified\":true,\"contentHash\":\"$HASH\"}"
  curl -sf -d '{"results": ["{\"counts\": {\"failed\": 1}}"], "region": "us-east-1"}' "$AWS_ENDPOINT_URL/moto-api/static/lambda-simple/response" >/dev/null
  fails "a failed catalog is an exit code" "a catalog failed" "$script/invoke" poll
  echo_events false
  for _ in 1 2 3; do aws s3 cp --quiet "$WORK/parameters" "s3://$bucket/mirror/object"; done
  aws s3 rm --quiet "s3://$bucket/mirror/object"
  failed_deployment
  is "teardown asks" "$(code_of "$script/teardown" --delete-data <<<no) $(aws lambda list-functions | jq '.Functions | length')" "1 2"
  succeeds "teardown deletes the data with --delete-data" "$script/teardown" --yes --delete-data
  is "and everything else" "$(aws lambda list-functions | jq '.Functions | length') $(aws s3 ls | grep -c "$bucket")" "0 0"
}

# A machine without Debian's packages.
without_packages() {
  local name
  mkdir -p "$WORK/few"
  for name in bash env dirname basename sed; do ln -sf "$(type -P $name)" "$WORK/few/$name"; done
  fails "where packages cannot be installed, the missing ones are named" "deploy: install these, which are packages of Debian: jq" \
    env -i HOME="$WORK" PATH="$WORK/few" "$ROOT/scripts/deploy"
}

need_python_tools
need_debian node=nodejs
export SAM_CLI_TELEMETRY=0 LOG_LEVEL=ERROR AWS_DEFAULT_REGION=us-east-1 AWS_REGION=us-east-1
linters
resolve || die "the template cannot be resolved"
bucket
bucket_policy
roles
triggers
entry_points
settings
alarms
cdn
closed_mirror
without_packages
scripts
