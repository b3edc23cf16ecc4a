# Search over HTTP and at the command line, and on the real catalog the first package for what people type.
# shellcheck shell=bash

STORE=$WORK/store
DATA=$(data_folder)

# found CATALOG QUERY: the first package that the command line finds in the store.
found() { "$CATALOG_MIRROR" search --json --store "$STORE" --catalog "$1" --limit 1 "$2" | jq -r '.[0].results[0].package // "none"'; }

# The answer over HTTP is that of the command line.
over_http() {
  local query expected
  serve "$STORE"
  for query in "queue" "quene" "DEMO" "nothing at all"; do
    expected=$("$CATALOG_MIRROR" search --json --store "$STORE" --catalog demo "$query" | jq -cS '.[0] | [.total, .results, .facets]')
    is "search for $query over HTTP" \
      "$(curl -sSfG "$URL/catalogs/demo/search" --data-urlencode "q=$query" | jq -cS '[.total, .results, .facets]')" "$expected"
  done
  matches "the table has the package" "$("$CATALOG_MIRROR" search --store "$STORE" queue)" 'demo-queue'
}

first_hits() {
  local query expected
  while IFS='|' read -r query expected; do
    is "search for $query" "$(found full "$query")" "$expected"
  done <<END
strimzi|strimzi-kafka-operator
strimzi kafka|strimzi-kafka-operator
cert manager|cert-manager
Cert-Manager|cert-manager
grafna|grafana-operator
GRÁFANA|grafana-operator
promethues|prometheus
argocd|argocd-operator
argo cd|argocd-operator
vault|vault-config-operator
velero|oadp-operator
logging loki|loki-operator
hyperconverged|community-kubevirt-hyperconverged
external secrets|external-secrets-operator
rabbitmqq|rabbitmq-cluster-operator
percona mysql|percona-server-mysql-operator
open data hub|opendatahub-operator
quay|project-quay
eclipse che|eclipse-che
cass|cass-operator-community
END
}

"$CATALOG_MIRROR" poll --store "$STORE" --catalog "demo=dir:$ROOT/tests/catalogs/v2" >"$WORK/poll.out"
over_http
if [[ -n $DATA ]]; then
  unpack "$DATA/community-full.tar.zst" "$WORK/data"
  "$CATALOG_MIRROR" poll --store "$STORE" --catalog "full=dir:$WORK/data/configs" >"$WORK/poll.out"
  rm -r "$WORK/data"
  first_hits
fi
