# Cost of what runs at publication and composition, on the worst input of each algorithm, measured from outside: its CPU time
# grows with the input, its memory stays under the limits, and a pull that takes too long ends. The same of the commands about
# upgrades, in instructions. Only an optimised program says something about seconds: scripts/long-checks runs this part.
# shellcheck shell=bash

# CPU seconds that a process without work takes in five seconds.
IDLE_MAX=0.2
# What a composition may hold beyond the publication of its input, in MB.
COMPOSE_MORE=32
# Each of these takes several times `pullSeconds` to publish, and again to compose.
LONG_BYTES=600000000
LARGE_BYTES=256000000

# command, input, and for compositions the packages that are selected. What is required is included. For commands about upgrades
# the version, the format or the operators.
rows() {
  local input
  for input in graph cycles channels versions alternatives ranges required chained any_of apis images words camel kinds small \
    packages large; do
    echo "poll|$input|"
  done
  cat <<'END'
images|images|
search|words|
search|kinds|
diff|changes|
compose|graph|[{name: p, minVersion: 1.0.1}]
explain|graph|[{name: p, minVersion: 1.0.1}]
compose|cycles|[{name: p, full: true}]
compose|channels|[{name: p, minVersion: 1.0.1}]
explain|channels|[{name: p, channels: [{name: s0}]}]
compose|versions|[{name: p, minVersion: 1.0.0-0}]
compose|images|[{name: p, maxVersion: 1.0.99}]
compose|large|[{name: p, minVersion: 1.0.1}]
compose|alternatives|[{name: a}]
compose|ranges|[{name: a}]
compose|required|[{name: a}]
compose|chained|[{name: a}]
compose|any_of|[{name: a}]
compose|apis|[{name: a}]
upgrade|many_channels|1.0.0
plan|many_channels|p 1.0.0 s0
plan|gone|p 1.0.1 s
plan|operators|all
bundle|rules|
bundle|urls|
graph|heads|text
END
  for input in heads long_range ranged replaced graph forks cycles; do
    echo "upgrade|$input|1.0.1"
  done
  for input in long_range ranged replaced graph forks cycles; do
    printf '%s\n' "graph|$input|text" "graph|$input|dot" "graph|$input|mermaid"
  done
  for input in long_range ranged replaced graph; do
    printf '%s\n' "plan|$input|p 1.0.1 s" "plan|$input|all"
  done
}

growth() {
  local command input selection said
  while IFS='|' read -r command input selection; do
    if said=$(python3 -B "$LIB/cost.py" "$CATALOG_MIRROR" "$WORK" "$command" "$input" "$selection" 2>&1); then
      ok "$said"
    else
      not_ok "$command of $input costs what its bytes cost" "$said"
    fi
  done < <(rows | sort -t'|' -k2,2)
}

# large_package: its publication, and the composition of nearly all of it from what was published.
large_package() {
  local plain composed
  python3 -B "$LIB/worst_inputs.py" large "$WORK/large" "$LARGE_BYTES"
  printf 'catalogs:\n- {name: c, source: "dir:%s"}\n' "$WORK/large" >"$WORK/plain.yaml"
  cat "$WORK/plain.yaml" - >"$WORK/composed.yaml" <<<'- {name: composed, compose: {inputs: [{catalog: c, select: {packages: [{name: p, minVersion: 1.0.1}]}}]}}'
  plain=$(peak_of poll --store "$WORK/large-store" --config "$WORK/plain.yaml")
  composed=$(peak_of poll --store "$WORK/large-store" --config "$WORK/composed.yaml")
  is "the large package is composed" "$(jq -r .serial "$WORK/large-store/catalogs/composed/current.json")" 1
  succeeds "a composition takes $composed MB, at most $COMPOSE_MORE more than the $plain MB of its input" \
    at_most "$composed" "$(awk -v plain="$plain" -v more="$COMPOSE_MORE" 'BEGIN {print plain + more}')"
  rm -r "$WORK/large" "$WORK/large-store"
}

peak_of() { python3 "$LIB/measure.py" 1 true "$CATALOG_MIRROR" "$@" 2>"$WORK/poll.err" | cut -d' ' -f3; }

# cpu PROCESS: seconds of all its threads.
cpu() { awk -v ticks="$(getconf CLK_TCK)" '{print ($14 + $15) / ticks}' "/proc/$1/stat"; }

# ends_in_time NAME CONFIG: the poll of the catalog in the configuration fails at its limit, and its threads end with it.
ends_in_time() {
  local name=$1 store=$WORK/long-store port begin before after
  port=$(free_port)
  begin=$(now_ms)
  start "$WORK/long.log" "$CATALOG_MIRROR" serve --store "$store" --config "$2" --listen "127.0.0.1:$port"
  wait_for 60 grep -qs pullSeconds "$store/catalogs/$name/status.json"
  succeeds "$name fails at its limit" grep -q 'limit pullSeconds' "$store/catalogs/$name/status.json"
  succeeds "$name fails after $(($(now_ms) - begin)) ms" at_most "$(($(now_ms) - begin))" 5500
  sleep 2
  before=$(cpu "$STARTED_PID")
  sleep 5
  after=$(cpu "$STARTED_PID")
  succeeds "$name takes no CPU time after its end: $before s, then $after s" \
    at_most "$(awk -v before="$before" -v after="$after" 'BEGIN {print after - before}')" "$IDLE_MAX"
  end_process "$STARTED_PID"
}

time_limit() {
  local limits='limits: {pullSeconds: 3}' source="dir:$WORK/long"
  python3 -B "$LIB/worst_inputs.py" noise "$WORK/long" "$LONG_BYTES"
  cat >"$WORK/plain.yaml" <<<"{$limits, catalogs: [{name: plain, source: '$source'}]}"
  ends_in_time plain "$WORK/plain.yaml"
  "$CATALOG_MIRROR" poll --store "$WORK/long-store" --catalog "up=$source" >"$WORK/poll.out" 2>&1
  cat >"$WORK/composed.yaml" <<<"{$limits, catalogs: [
    {name: composed, compose: {inputs: [{catalog: up, select: {packages: [{name: p, minVersion: 1.0.1}]}}]}}]}"
  ends_in_time composed "$WORK/composed.yaml"
  cat >"$WORK/pulled.yaml" <<<"{$limits, catalogs: [
    {name: pulled, compose: {inputs: [{source: '$source', select: {packages: [{name: p, minVersion: 1.0.1}]}}]}}]}"
  ends_in_time pulled "$WORK/pulled.yaml"
}

need_debian valgrind=valgrind
growth
large_package
time_limit
