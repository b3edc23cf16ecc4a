# The AWS template: the linters accept it, and deployed to moto it is what infra/aws/README.md says. The part sam builds it
# and has checkov scan it.
# shellcheck shell=bash

AWS=$ROOT/infra/aws
TEMPLATE=$AWS/template.yaml
HASH=$(printf 'a%.0s' {1..64})
STACK=catalog-mirror

linters() {
  local script
  # This runs cfn-lint too.
  succeeds "sam validate --lint accepts it" sam validate --lint --region us-east-1 --template "$TEMPLATE"
  is "every check that checkov skips has its reason" \
    "$(grep -A1 '^  # ' "$AWS/.checkov.yaml" | grep -c '^  - CKV')" "$(grep -c '^  - CKV' "$AWS/.checkov.yaml")"
  for script in build deploy invoke teardown; do
    matches "scripts/$script --help shows the usage" "$("$ROOT/scripts/$script" --help)" "scripts/$script "
  done
  is "the cost page is what scripts/cost prints" "$(sed -n '/^<!-- cost -->$/,/^<!-- end -->$/p' "$ROOT/infra/COST.md" | grep -v '^<!--')" "$("$ROOT/scripts/cost")"
}

moto_stack() { "$VENV/bin/python" "$ROOT/scripts/lib/moto_stack.py" "$@"; }

deploy_all() {
  SECRETS=arn:aws:secretsmanager:us-east-1:123456789012:secret:a,arn:aws:secretsmanager:us-east-1:123456789012:secret:b
  PARAMETERS=("AlarmEmail=ops@example.com" "PullSecretArns=$SECRETS" "EventBusName=default" "PollMetrics=catalog")
  RESOURCES=$WORK/resources.json
  moto_stack deploy "$TEMPLATE" "$STACK" "${PARAMETERS[@]}" >"$RESOURCES" || die "the stack cannot be deployed"
  is "moto deploys it" "$(aws cloudformation describe-stacks --stack-name "$STACK" | jq -r '.Stacks[0].StackStatus')" CREATE_COMPLETE
  BUCKET=$(id Bucket)
}

# id NAME: what a resource has become; property NAME FILTER: of its properties as they were resolved.
id() { jq -r --arg name "$1" '.[$name].Id' "$RESOURCES"; }
property() { jq -rc --arg name "$1" ".[\$name].Properties | $2" "$RESOURCES"; }

bucket() {
  is "the bucket blocks all public access" "$(property Bucket '.PublicAccessBlockConfiguration | [length, all(.[]; .)]')" '[4,true]'
  is "it has no access lists" "$(property Bucket '.OwnershipControls.Rules[].ObjectOwnership')" BucketOwnerEnforced
  is "it is versioned" "$(property Bucket .VersioningConfiguration.Status)" Enabled
  is "its encryption keeps ETags hashes of the content" \
    "$(aws s3api get-bucket-encryption --bucket "$BUCKET" | jq -r '.. | .SSEAlgorithm? // empty')" AES256
  is "replaced versions expire" \
    "$(property Bucket '[.LifecycleConfiguration.Rules[] | .NoncurrentVersionExpiration.NoncurrentDays]')" '["7"]'
  is "it outlives the stack" "$(grep -A3 '^  Bucket:$' "$TEMPLATE" | grep -c 'Policy: Retain')" 2
}

# Each line: the expected answer, the action, the key, and fields of the request. A pointer is never put without a condition.
bucket_policy() {
  local object=arn:aws:s3:::$BUCKET/mirror table=$WORK/puts cdn key
  aws s3api get-bucket-policy --bucket "$BUCKET" | jq -r .Policy >"$WORK/policy.json"
  cdn="principal=cloudfront.amazonaws.com AWS:SourceArn=arn:aws:cloudfront::123456789012:distribution/$(id Distribution)"
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
  } >"$table"
  hold_against "the bucket's policy" "$WORK/policy.json" "$table"
}

# One key of each kind of immutable object.
immutable_keys() {
  printf '%s\n' "all/sha256/$HASH.json.gz" "packages/sha256/$HASH.json.zst" "snapshots/sha256/$HASH.json.zst" \
    "indexes/sha256/$HASH.json.zst" "facts/sha256/$HASH.json.zst" "garbage/sha256/$HASH.json.zst" "blobs/sha256/$HASH"
}

# The poller may delete what garbage collection deletes: immutable objects, but no document, no older version of anything, and
# nothing beside the mirror.
deleting() {
  local object=arn:aws:s3:::$BUCKET/mirror table=$WORK/deletes
  property PollerRole '.Policies[].PolicyDocument' >"$WORK/poller.json"
  {
    immutable_keys | sed "s|^|Allow s3:DeleteObject $object/|"
    cat <<EOF
None s3:DeleteObject $object/catalogs/v4.20/current.json
None s3:DeleteObject $object/catalogs/v4.20/status.json
None s3:DeleteObject $object/catalogs/v4.20/notified.json
None s3:DeleteObject $object/catalogs.json
None s3:DeleteObject $object/gc.json
None s3:DeleteObject arn:aws:s3:::$BUCKET/config/catalogs.yaml
None s3:DeleteObjectVersion $object/packages/sha256/$HASH.json.zst
None s3:DeleteBucket arn:aws:s3:::$BUCKET
Allow s3:PutObject $object/gc.json
Allow s3:GetObject $object/gc.json
Allow s3:ListBucket arn:aws:s3:::$BUCKET
EOF
  } >"$table"
  hold_against "the poller's role" "$WORK/poller.json" "$table"
  jq '{Statement: [.[].Properties.Policies[]?.PolicyDocument.Statement[] | select(.Effect == "Allow")]}' "$RESOURCES" >"$WORK/roles.json"
  is "no role deletes older versions" "$(jq '[.Statement[].Action] | flatten | map(select(test("Version|\\*"))) | length' "$WORK/roles.json")" 0
}

# hold_against WHAT POLICY TABLE: one check for each line.
hold_against() {
  local expected request answer checked=0
  while read -r expected request && read -r answer <&3; do
    is "$1: ${request//$HASH/HASH}" "$answer" "$expected"
    checked=$((checked + 1))
  done <"$3" 3< <(cut -d' ' -f2- "$3" | "$VENV/bin/python" "$ROOT/scripts/lib/policy.py" "$2")
  is "$1 is asked everything" "$checked" "$(wc -l <"$3")"
}

# role NAME: each action that it allows, with its resource.
role() {
  property "$1" '.Policies[].PolicyDocument.Statement[] | .Effect as $effect | ([.Resource] | flatten[]) as $where
    | ([.Action] | flatten[]) | "\($effect) \(.) \($where)"' |
    sed "s/:us-east-1:123456789012:/:/; s/$BUCKET/BUCKET/; s/$STACK-\([A-Za-z]*\)-[A-Z0-9]*$/\1/"
}

roles() {
  same_lines "the reader may read the mirror, and nothing else" "$(role ReaderRole)" "Allow s3:GetObject arn:aws:s3:::BUCKET/mirror/*
Allow s3:ListBucket arn:aws:s3:::BUCKET
Allow logs:CreateLogStream arn:aws:logs:log-group:/aws/lambda/$STACK-reader:*
Allow logs:PutLogEvents arn:aws:logs:log-group:/aws/lambda/$STACK-reader:*"
  same_lines "the poller may write the mirror, collect garbage and use its queue and bus" "$(role PollerRole)" "Allow s3:GetObject arn:aws:s3:::BUCKET/config/catalogs.yaml
Allow s3:GetObject arn:aws:s3:::BUCKET/mirror/*
Allow s3:PutObject arn:aws:s3:::BUCKET/mirror/*
Allow s3:DeleteObject arn:aws:s3:::BUCKET/mirror/all/sha256/*
Allow s3:DeleteObject arn:aws:s3:::BUCKET/mirror/packages/sha256/*
Allow s3:DeleteObject arn:aws:s3:::BUCKET/mirror/snapshots/sha256/*
Allow s3:DeleteObject arn:aws:s3:::BUCKET/mirror/indexes/sha256/*
Allow s3:DeleteObject arn:aws:s3:::BUCKET/mirror/facts/sha256/*
Allow s3:DeleteObject arn:aws:s3:::BUCKET/mirror/garbage/sha256/*
Allow s3:DeleteObject arn:aws:s3:::BUCKET/mirror/blobs/sha256/*
Allow s3:ListBucket arn:aws:s3:::BUCKET
Allow sqs:SendMessage arn:aws:sqs:Queue
Allow sqs:ReceiveMessage arn:aws:sqs:Queue
Allow sqs:DeleteMessage arn:aws:sqs:Queue
Allow sqs:GetQueueAttributes arn:aws:sqs:Queue
Allow logs:CreateLogStream arn:aws:logs:log-group:/aws/lambda/$STACK-poller:*
Allow logs:PutLogEvents arn:aws:logs:log-group:/aws/lambda/$STACK-poller:*
Allow secretsmanager:GetSecretValue arn:aws:secretsmanager:secret:a
Allow secretsmanager:GetSecretValue arn:aws:secretsmanager:secret:b
Allow events:PutEvents arn:aws:events:event-bus/default"
  same_lines "the scheduler starts the poller" "$(role SchedulerRole)" "Allow lambda:InvokeFunction arn:aws:lambda:function:Poller
Allow sqs:SendMessage arn:aws:sqs:DeadLetters"
  is "no role has a managed policy" "$(jq -c '[.[].Properties.ManagedPolicyArns? // empty]' "$RESOURCES")" '[]'
  is "the functions run as these roles" "$(property Poller .Role) $(property Reader .Role)" \
    "$(aws iam get-role --role-name "$(id PollerRole)" | jq -r .Role.Arn) $(aws iam get-role --role-name "$(id ReaderRole)" | jq -r .Role.Arn)"
}

schedule() {
  local schedule queue mapping
  schedule=$(aws scheduler get-schedule --name PollerTick)
  mapping=$(aws lambda list-event-source-mappings --function-name "$(id Poller)" | jq -c '.EventSourceMappings[0]')
  is "the schedule is the interval" "$(jq -r .ScheduleExpression <<<"$schedule")" "rate(10 minutes)"
  is "it sends what the poller takes for a tick" "$(jq -r .Target.Input <<<"$schedule")" "{}"
  matches "to the poller" "$(jq -r .Target.Arn <<<"$schedule")" "function:$(id Poller)\$"
  matches "as the scheduler's role" "$(jq -r .Target.RoleArn <<<"$schedule")" "role/$(id SchedulerRole)\$"
  is "the queue's messages fail one by one" "$(jq -c .FunctionResponseTypes <<<"$mapping")" '["ReportBatchItemFailures"]'
  is "two at a time" "$(jq -r .ScalingConfig.MaximumConcurrency <<<"$mapping")" 2
  is "three failures are enough" "$(property Queue .RedrivePolicy.maxReceiveCount)" 3
  is "a message is hidden for six times as long as a poll may take" "$(property Queue .VisibilityTimeout)" "$((6 * $(property Poller .Timeout)))"
  queue=$(jq -r .EventSourceArn <<<"$mapping")
  printf 'Deny sqs:SendMessage %s aws:SecureTransport=false\nNone sqs:SendMessage %s aws:SecureTransport=true\n' "$queue" "$queue" >"$WORK/queue"
  property QueuePolicy .PolicyDocument >"$WORK/queue.json"
  hold_against "the queue's policy" "$WORK/queue.json" "$WORK/queue"
  is "both queues are encrypted" "$(property Queue .SqsManagedSseEnabled)$(property DeadLetters .SqsManagedSseEnabled)" truetrue
}

collecting() {
  local schedule
  schedule=$(aws scheduler get-schedule --name PollerCollect)
  is "garbage is collected every 30 minutes" "$(jq -c '[.ScheduleExpression, .State]' <<<"$schedule")" '["rate(30 minutes)","ENABLED"]'
  is "the schedule sends the gc event" "$(jq -c '.Target.Input | fromjson' <<<"$schedule")" "$(jq -c . "$ROOT/functions/poller/tests/events/manual-gc.json")"
  matches "as the scheduler's role does" "$(jq -r '"\(.Target.Arn) \(.Target.RoleArn)"' <<<"$schedule")" "function:$(id Poller) .*role/$(id SchedulerRole)\$"
  moto_stack resolve "$TEMPLATE" "$STACK" CollectGarbage=false >"$WORK/hoarding.json"
  is "unless a parameter forbids it" "$(jq -rc '[.[] | select(.Type == "AWS::Scheduler::Schedule").Properties | "\(.State // "ENABLED") \(.ScheduleExpression)"] | sort' "$WORK/hoarding.json")" \
    '["DISABLED rate(30 minutes)","ENABLED rate(10 minutes)"]'
  is "and then no alarm waits for it" "$(jq -c '[has("FailedCollectionAlarm"), has("StuckCollectionAlarm")]' "$WORK/hoarding.json")" '[false,false]'
}

# Calls from outside: the CDN may call the reader, and nothing may call the poller.
entry_points() {
  succeeds "the poller has no resource policy" bash -c "! aws lambda get-policy --function-name $(id Poller)"
  succeeds "the poller has no URL" bash -c "! aws lambda get-function-url-config --function-name $(id Poller)"
  is "the reader's URL wants a signature" "$(aws lambda get-function-url-config --function-name "$(id Reader)" | jq -r .AuthType)" AWS_IAM
  same_lines "only the CDN may call the reader" \
    "$(aws lambda get-policy --function-name "$(id Reader)" | jq -r '.Policy | fromjson | .Statement[] | "\(.Action) \(.Principal.Service) \(.Condition.ArnLike."AWS:SourceArn")"')" \
    "lambda:InvokeFunctionUrl cloudfront.amazonaws.com arn:aws:cloudfront::123456789012:distribution/$(id Distribution)
lambda:InvokeFunction cloudfront.amazonaws.com arn:aws:cloudfront::123456789012:distribution/$(id Distribution)"
  is "and not past its URL" "$(property ReaderInvokePermission .InvokedViaFunctionUrl)" true
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
  local function name
  for function in Poller Reader; do
    for name in $(property $function '.Environment.Variables | keys[]' | grep -v -e RUST_LOG -e MALLOC_ARENA_MAX); do
      succeeds "the ${function,} knows $name" grep -rqw "$name" "$ROOT/functions/${function,}/src"
    done
    takes_environment "$function" "${function,}"
  done
  is "logs are kept for a while" "$(aws logs describe-log-groups | jq -c '[.logGroups[].retentionInDays] | unique')" '[30]'
  is "the logs are those of the functions" \
    "$(property Poller .LoggingConfig.LogGroup) $(property Reader .LoggingConfig.LogGroup)" "$(id PollerLogs) $(id ReaderLogs)"
}

alarms() {
  local alarms metric
  alarms=$(aws cloudwatch describe-alarms | jq -c .MetricAlarms)
  same_lines "the alarms" "$(jq -r '.[].AlarmName' <<<"$alarms")" "NoPollAlarm
FailedPollsAlarm
FailedCollectionAlarm
StuckCollectionAlarm
PollerErrorsAlarm
DeadLettersAlarm
ReaderErrorsAlarm
CdnErrorsAlarm"
  is "silence is an alarm" "$(jq -c '.[] | select(.AlarmName == "NoPollAlarm") | [.TreatMissingData, .Period, .EvaluationPeriods]' <<<"$alarms")" '["breaching",600,3]'
  is "two hours without a successful collection are an alarm" "$(jq -c '.[] | select(.AlarmName == "FailedCollectionAlarm") | [.Period, .Statistic, .Threshold]' <<<"$alarms")" '[7200,"Minimum",0]'
  is "a state of collection that lasts a day is an alarm" "$(jq -c '.[] | select(.AlarmName == "StuckCollectionAlarm") | [.Metrics[0].Expression, .Threshold]' <<<"$alarms")" '["IF(state > 0, age, 0)",86400]'
  is "each tells the topic" "$(jq -c '[.[].AlarmActions[]] | unique' <<<"$alarms")" "[\"$(id AlarmTopic)\"]"
  watched=$(jq -r '.[] | (., .Metrics[]?.MetricStat?.Metric?) | select(.Namespace? == "CatalogMirror") | .MetricName' <<<"$alarms")
  same_lines "the poller writes by default what the alarms watch" "$(sed -n '/^const ALARMS/,/^];/s/^ *"\(.*\)",$/\1/p' "$ROOT/functions/poller/src/metrics.rs")" "$watched"
  is "the cost page counts the watched metrics, of the mirror and of AWS" \
    "$(sed -n 's/^METRICS = //p; s/^ALARMS = //p' "$ROOT/scripts/cost" | paste -sd' ')" \
    "$(wc -l <<<"$watched") $(jq '[.[] | (., .Metrics[]?.MetricStat?.Metric?) | .MetricName? // empty] | length' <<<"$alarms")"
  for metric in $(property Dashboard '.DashboardBody' | grep '"CatalogMirror"' | grep -o '"[A-Z][A-Za-z]*"' | grep -v '"CatalogMirror"' | tr -d '"') LastSuccessAge; do
    succeeds "the poller writes $metric" grep -rqw "$metric" "$ROOT/functions/poller/src"
  done
  succeeds "the dashboard is JSON" jq -e '.widgets | length > 0' <<<"$(property Dashboard .DashboardBody)"
  moto_stack resolve "$TEMPLATE" "$STACK" >"$WORK/plain.json"
  is "by default there is no dashboard" "$(jq 'has("Dashboard")' "$WORK/plain.json")" false
  is "without an address no alarm is sent" "$(jq -c '[.[] | .Properties.AlarmActions? // empty] | add // []' "$WORK/plain.json")" '[]'
  moto_stack resolve "$TEMPLATE" "$STACK" AWS::Region=eu-central-1 >"$WORK/europe.json"
  is "the CDN's alarm is only where its metrics are" "$(jq -c 'has("CdnErrorsAlarm"), has("NoPollAlarm")' "$WORK/europe.json" | tr '\n' ' ')" "false true "
}

# tests/e2e/template.rs compares the behaviours with the routes and the kinds of objects.
cdn() {
  is "the CDN compresses nothing" "$(property Distribution '.DistributionConfig | [.DefaultCacheBehavior, .CacheBehaviors[]] | map(.Compress) | unique')" '[false]'
  is "and speaks TLS" "$(property Distribution '.DistributionConfig | [.DefaultCacheBehavior, .CacheBehaviors[]] | map(.ViewerProtocolPolicy) | unique')" '["redirect-to-https"]'
  is "each origin has its access control" "$(property Distribution '[.DistributionConfig.Origins[].OriginAccessControlId]')" '["ReaderAccess","BucketAccess"]'
  is "the mirror's prefix is all of the bucket that it sees" "$(property Distribution '.DistributionConfig.Origins[1].OriginPath')" /mirror
  cache_policies
  is "pages of all origins may read" "$(property TransportHeaders '.ResponseHeadersPolicyConfig.CorsConfig.AccessControlAllowOrigins.Items')" '["*"]'
  is "anyone may read, so the poller refuses private catalogs" \
    "$(property Poller .Environment.Variables.PUBLISH_PRIVATE) $(jq 'has("Access")' "$RESOURCES")" "false false"
}

# The CDN's function, run as CloudFront runs it: one event, and the request or an answer as the result.
closed_mirror() {
  local hash cors='.ResponseHeadersPolicyConfig.CorsConfig.AccessControlAllowOrigins.Items' behaviors='.DistributionConfig | [.DefaultCacheBehavior, .CacheBehaviors[]]'
  hash=$(printf 'Bearer secret' | sha256sum | cut -d' ' -f1)
  moto_stack resolve "$TEMPLATE" "$STACK" Public=true | jq -r .Poller.Properties.Environment.Variables.PUBLISH_PRIVATE >"$WORK/public"
  is "private catalogs are published if that is wanted" "$(<"$WORK/public")" true
  moto_stack resolve "$TEMPLATE" "$STACK" "AccessHashes=$HASH,$hash" >"$WORK/closed.json"
  local RESOURCES=$WORK/closed.json
  is "and by a mirror that is closed" "$(property Poller .Environment.Variables.PUBLISH_PRIVATE)" true
  is "every path of it asks for a login" "$(property Distribution "$behaviors | map(.FunctionAssociations[0].EventType) | unique")" '["viewer-request"]'
  property Access .FunctionCode >"$WORK/access.js"
  echo 'console.log(JSON.stringify(handler(JSON.parse(process.argv[2])).statusCode ?? "passes"))' >>"$WORK/access.js"
  access() { node "$WORK/access.js" "{\"request\": {\"headers\": {$1}}}"; }
  is "the right login passes" "$(access '"authorization": {"value": "Bearer secret"}')" '"passes"'
  is "a wrong one does not" "$(access '"authorization": {"value": "Bearer Secret"}')" 401
  is "nor does a hash" "$(access "\"authorization\": {\"value\": \"$hash\"}")" 401
  is "nor does none" "$(access '')" 401
  is "pages of no other origin may read" "$(property TransportHeaders "$cors")" null
  moto_stack resolve "$TEMPLATE" "$STACK" "AccessHashes=$HASH" Origins=https://docs.lab >"$WORK/closed.json"
  is "but of those that are named" "$(property TransportHeaders "$cors")" '["https://docs.lab"]'
  property Access .FunctionCode >"$WORK/preflight.js"
  echo "const ask = (value) => handler({request: {method: 'OPTIONS', headers: {origin: {value}}}}); const answers = ['https://docs.lab', 'https://other.lab'].map(ask)
    console.log(JSON.stringify(answers.map(({statusCode, headers}) => [statusCode, headers['access-control-allow-origin']?.value ?? '']).flat()))" >>"$WORK/preflight.js"
  is "whose scripts may send a login" "$(node "$WORK/preflight.js")" '[204,"https://docs.lab",204,""]'
}

cache_policies() {
  local policy
  for policy in NegotiatedCache QueriedCache ImmutableCache; do
    is "$policy leaves the time to the origin" "$(property $policy '.CachePolicyConfig | [.MinTTL, .DefaultTTL, .MaxTTL]')" '[0,0,31536000]'
    is "$policy leaves Accept-Encoding as it is" "$(property $policy '.CachePolicyConfig.ParametersInCacheKeyAndForwardedToOrigin | [.EnableAcceptEncodingGzip, .EnableAcceptEncodingBrotli]')" '[false,false]'
  done
  is "what programs ask for is kept for five minutes" "$(property AskedCache '.CachePolicyConfig | [.MinTTL, .DefaultTTL, .MaxTTL]')" '[300,300,31536000]'
  is "scripts/cost counts with that" "$(sed -n "s/^AWS_MINUTES = //p" "$ROOT/scripts/cost")" 5
  is "it is the same in all else" "$(property AskedCache '.CachePolicyConfig | del(.Name, .Comment, .MinTTL, .DefaultTTL)')" \
    "$(property NegotiatedCache '.CachePolicyConfig | del(.Name, .Comment, .MinTTL, .DefaultTTL)')"
  is "these are the hash and the pointer" "$(property Distribution '[.DistributionConfig.CacheBehaviors[] | select(.CachePolicyId == "AskedCache") | .PathPattern]')" \
    '["/catalogs/*/content-hash","/catalogs/*/current.json"]'
  local key='.CachePolicyConfig.ParametersInCacheKeyAndForwardedToOrigin | [.HeadersConfig.Headers // [], .QueryStringsConfig.QueryStringBehavior]'
  is "codings are kept apart" "$(property NegotiatedCache "$key")" '[["Accept-Encoding"],"none"]'
  is "queries too" "$(property QueriedCache "$key")" '[["Accept-Encoding"],"all"]'
  is "a stored object is one thing" "$(property ImmutableCache "$key")" '[[],"none"]'
}

# echo_events true|false: whether moto answers invocations with the event instead of running containers. While it does,
# it knows no functions.
echo_events() {
  local run=true
  [[ $1 == false ]] || run=false
  curl -sf -d "{\"lambda\": {\"use_docker\": $run}}" "$AWS_ENDPOINT_URL/moto-api/config" >/dev/null
}

# The scripts, against the stack that is there.
scripts() {
  local script=$ROOT/scripts
  mkdir "$WORK/reduced"
  moto_stack reduce "$TEMPLATE" >"$WORK/reduced/template.yaml" 2>/dev/null
  printf 'catalogs: [{name: a, source: "quay.io/example/catalog:latest"}]\n' >"$WORK/catalogs.yaml"
  printf '# ours\nReaderMemory=256 # small\n' >"$WORK/parameters"
  printf '%s\n' "${PARAMETERS[@]}" >>"$WORK/parameters"
  # moto passes over the conditions of a bucket's policy, so it refuses everything.
  aws s3api delete-bucket-policy --bucket "$BUCKET"
  succeeds "scripts/deploy changes the stack" "$script/deploy" --no-poll --built "$WORK/reduced" --artifacts functions \
    --parameters "$WORK/parameters" --catalogs "$WORK/catalogs.yaml" PollerMemory=1024
  is "with the given sizes" "$(aws lambda list-functions | jq -c '[.Functions[].MemorySize] | sort')" '[256,1024]'
  is "the configuration is uploaded" "$(aws s3 cp --quiet "s3://$BUCKET/config/catalogs.yaml" -)" "$(cat "$WORK/catalogs.yaml")"
  echo_events true
  is "invoke tick" "$("$script/invoke" tick | jq -c .)" '{}'
  is "invoke poll" "$("$script/invoke" poll --force a b | jq -c .)" '{"action":"poll","catalogs":["a","b"],"force":true}'
  is "invoke gc" "$("$script/invoke" gc --dry-run | jq -c .)" '{"action":"gc","dryRun":true}'
  is "invoke rollback" "$("$script/invoke" rollback --content-hash "$HASH" a | jq -c .)" "{\"action\":\"rollback\",\"catalogs\":[\"a\"],\"contentHash\":\"$HASH\"}"
  is "and whatever it was" "$("$script/invoke" rollback --unverified --content-hash "$HASH" a | jq -c .unverified)" true
  curl -sf -d '{"results": ["{\"counts\": {\"failed\": 1}}"], "region": "us-east-1"}' "$AWS_ENDPOINT_URL/moto-api/static/lambda-simple/response" >/dev/null
  is "a failed catalog is an exit code" "$(code_of "$script/invoke" poll)" 1
  echo_events false
  for _ in 1 2 3; do aws s3 cp --quiet "$WORK/parameters" "s3://$BUCKET/mirror/object"; done
  aws s3 rm --quiet "s3://$BUCKET/mirror/object"
  is "teardown asks" "$(code_of "$script/teardown" --delete-data <<<no) $(aws lambda list-functions | jq '.Functions | length')" "1 2"
  succeeds "teardown deletes the data with --delete-data" "$script/teardown" --yes --delete-data
  is "and everything else" "$(aws lambda list-functions | jq '.Functions | length') $(aws s3 ls | grep -c "$BUCKET")" "0 0"
}

need_python_tools
need_debian node=nodejs
export SAM_CLI_TELEMETRY=0 LOG_LEVEL=ERROR
linters
start_moto
# By this name moto finds templates in its own S3, as sam uploads them.
export AWS_ENDPOINT_URL=${MOTO_URL/127.0.0.1/localhost} AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
export AWS_DEFAULT_REGION=us-east-1 AWS_REGION=us-east-1
deploy_all
bucket
bucket_policy
roles
deleting
schedule
collecting
entry_points
settings
alarms
cdn
closed_mirror
scripts
