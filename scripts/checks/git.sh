# Git's own server (git http-backend behind nginx, with TLS and a password) serves catalogs: branches, tags and commits, and repositories that
# must be refused. The tests of shared/mirror/source have what moves, and what servers do wrong.
# shellcheck shell=bash

REPOS=$WORK/repositories TREE=$WORK/tree
GIT_USER=mirror GIT_SECRET=correct-horse-battery-staple
# The user's own settings must not change what is committed.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com

# start_git_server: GIT is the URL of the folder of all repositories.
start_git_server() {
  local home=$WORK/git
  make_certificates "$home"
  htpasswd -nbB "$GIT_USER" "$GIT_SECRET" >"$home/htpasswd"
  # One process: others that it forks would outlive it.
  start "$home/fcgiwrap.out" fcgiwrap -s "unix:$home/socket"
  start_nginx "$REPOS" "" "
    ssl_certificate $home/tls.crt;
    ssl_certificate_key $home/tls.key;
    auth_basic git;
    auth_basic_user_file $home/htpasswd;
    location / {
      fastcgi_pass unix:$home/socket;
      fastcgi_buffering off;
      fastcgi_param SCRIPT_FILENAME $(git --exec-path)/git-http-backend;
      fastcgi_param GIT_PROJECT_ROOT $REPOS;
      fastcgi_param GIT_HTTP_EXPORT_ALL 1;
      fastcgi_param GIT_PROTOCOL \$http_git_protocol;
      fastcgi_param PATH_INFO \$uri;
      include /etc/nginx/fastcgi_params;
    }" ssl
  GIT=$NGINX GIT_CA=$home/ca.crt GIT_AUTH=$home/auth.json
  jq -n --arg host "${GIT#https://}" --arg auth "$(printf '%s:%s' "$GIT_USER" "$GIT_SECRET" | base64 -w0)" '{auths: {($host): {auth: $auth}}}' >"$GIT_AUTH"
}

# git_poll STORE SOURCE [OPTION...]: `outcome exit-code`, for the source below the server's URL.
git_poll() { AUTH_FILE=$GIT_AUTH REGISTRY_CA=$GIT_CA outcome "$1" "g=git:$GIT/$2" "${@:3}"; }

g() { git -C "$TREE" "$@"; }

# The revisions of a series, packed as a server keeps them: with deltas between their files.
make_repository() {
  git init --quiet --bare --initial-branch main "$REPOS/owner/repo.git"
  git init --quiet --initial-branch main "$TREE"
  mkdir -p "$TREE/catalogs/a" "$TREE/other"
  echo "not a catalog" >"$TREE/other/README"
  for step in 0 1 2 3; do
    # An older revision beside the newer one: their files are deltas of one another.
    rm -rf "$TREE/catalogs/b" && cp -r "$TREE/catalogs/a" "$TREE/catalogs/b"
    lay_over "$step" "$TREE/catalogs/a"
    g add --all && g commit --quiet -m "step $step"
  done
  g tag -a -m annotated v2 main~1
  g push --quiet "$REPOS/owner/repo.git" main v2
  git -C "$REPOS/owner/repo.git" gc --quiet --aggressive --prune=now
}

# equals NAME SOURCE COMMIT: the source publishes the files of a checkout of the commit.
equals() {
  local store=$WORK/equals
  rm -rf "$store" "$WORK/checkout"
  mkdir "$WORK/checkout"
  g archive "$3" catalogs/a | tar -x -C "$WORK/checkout"
  is "$1 is published with the content of its checkout" "$(git_poll "$store" "$2") $(content_hash "$store" g)" \
    "published 10 $("$CATALOG_MIRROR" render "$WORK/checkout/catalogs/a" | sha256)"
}

references() {
  equals "a branch" "owner/repo.git#main:catalogs/a" main
  equals "an annotated tag" "owner/repo.git#v2:catalogs/a" v2
  equals "a commit that no branch points to" "owner/repo.git#$(g rev-parse main~2):catalogs/a" main~2
}

# refused NAME REGEX SOURCE [OPTION...]
refused() {
  local store=$WORK/refused
  rm -rf "$store"
  is "$1 is refused" "$(git_poll "$store" "${@:3}")" "failed 1"
  matches "$1: status.json says why" "$(jq -r .error "$store/catalogs/g/status.json")" "$2"
  is "$1: no password is in the store or the log" "$(cat "$WORK/poll.err" - < <(grep -r . "$store") | grep -c "$GIT_SECRET")" 0
}

# repository NAME [OPTION...]: with the catalog, and a bomb if that is its name. Half a gigabyte of zeros is half a megabyte in a pack.
repository() {
  git init --quiet --bare --initial-branch main "${@:2}" "$REPOS/$1.git"
  git init --quiet --initial-branch main "${@:2}" "$WORK/$1"
  mkdir -p "$WORK/$1/configs"
  cp -r "$TREE/catalogs/a/." "$WORK/$1/configs"
  [[ $1 != bomb ]] || truncate -s 512M "$WORK/$1/configs/zeros.json"
  git -C "$WORK/$1" config core.bigFileThreshold 1m
  git -C "$WORK/$1" add --all
  git -C "$WORK/$1" commit --quiet -m "$1"
  git -C "$WORK/$1" push --quiet "$REPOS/$1.git" main
  # Packed before it is asked for: the client waits half a minute for the first byte.
  git -C "$REPOS/$1.git" -c core.bigFileThreshold=1m gc --quiet
  rm -r "${WORK:?}/$1"
}

refusals() {
  GIT_CA=$REGISTRY_CA refused "an unknown authority" '--ca-file' "owner/repo.git#main:catalogs/a"
  repository sha256 --object-format sha256
  refused "a repository of SHA-256" 'sha256' "sha256.git"
}

# peak_kb COMMAND...: the largest memory of the command, in kB.
peak_kb() {
  python3 -c 'import resource, subprocess, sys; subprocess.run(sys.argv[1:], capture_output=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@"
}

# Git inflates the pack and writes no file; 64 MB of the bomb may be read.
bombs() {
  local peak usual command
  command=("$CATALOG_MIRROR" poll --auth-file "$GIT_AUTH" --ca-file "$GIT_CA")
  usual=$(peak_kb "${command[@]}" --store "$WORK/usual" --catalog "g=git:$GIT/owner/repo.git#main:catalogs/a")
  repository bomb
  refused "a bomb" 'exceeds the limit ratio of 200' "bomb.git#main:configs"
  peak=$(peak_kb "${command[@]}" --store "$WORK/bombed" --catalog "g=git:$GIT/bomb.git#main:configs")
  is "a bomb takes no more memory than a catalog, within 32 MB ($peak kB, $usual kB)" "$((peak < usual + 32768))" 1
  say "a pack of $(du -sk "$REPOS/bomb.git/objects" | cut -f1) kB was refused with a peak of $peak kB"
}

start_git_server
make_repository
references
refusals
bombs
