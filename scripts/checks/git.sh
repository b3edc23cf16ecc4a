# Git's own server (git http-backend behind nginx, with TLS and a password) serves catalogs: branches, tags and commits, and repositories that
# must be refused. The tests of shared/source have what moves, and what servers do wrong.
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
      fastcgi_param QUERY_STRING \$query_string;
      fastcgi_param REQUEST_METHOD \$request_method;
      fastcgi_param CONTENT_TYPE \$content_type;
      fastcgi_param CONTENT_LENGTH \$content_length;
      fastcgi_param REMOTE_USER \$remote_user;
    }" ssl
  GIT=$NGINX GIT_CA=$home/ca.crt GIT_AUTH=$home/auth.json
  jq -n --arg host "${GIT#https://}" --arg auth "$(printf '%s:%s' "$GIT_USER" "$GIT_SECRET" | base64 -w0)" '{auths: {($host): {auth: $auth}}}' >"$GIT_AUTH"
}

# git_poll STORE SOURCE [OPTION...]: `outcome exit-code`, for the source below the server's URL.
git_poll() { AUTH_FILE=$GIT_AUTH REGISTRY_CA=$GIT_CA outcome "$1" "g=git:$GIT/$2" "${@:3}"; }

g() { git -C "$TREE" "$@"; }

# save MESSAGE: commits all files and pushes the branch.
save() {
  g add --all && g commit --quiet --allow-empty -m "$1" && g push --quiet --force "$REPOS/owner/repo.git" main
}

# The revisions of a series, packed as a server keeps them: with deltas between their files.
make_repository() {
  git init --quiet --bare --initial-branch main "$REPOS/owner/repo.git"
  git init --quiet --initial-branch main "$TREE"
  mkdir -p "$TREE/catalogs/a" "$TREE/other"
  lay_over 0 "$TREE/catalogs/a"
  echo "not a catalog" >"$TREE/other/README"
  save "step 0"
  for step in 1 2 3; do
    lay_over "$step" "$TREE/catalogs/a"
    # An older revision beside the newer one: their files are deltas of one another.
    rm -rf "$TREE/catalogs/b" && cp -r "$TREE/catalogs/a" "$TREE/catalogs/b"
    save "step $step"
  done
  g tag v1 && g tag -a -m annotated v2 main~1
  g push --quiet "$REPOS/owner/repo.git" v1 v2
  git -C "$REPOS/owner/repo.git" gc --quiet --aggressive --prune=now
}

# hash_of FOLDER: the content hash that a folder of files has.
hash_of() {
  rm -rf "$WORK/of-folder"
  "$CATALOG_MIRROR" poll --store "$WORK/of-folder" --catalog "g=dir:$1" >/dev/null 2>&1 || true
  content_hash "$WORK/of-folder" g
}

# equals NAME SOURCE COMMIT: the source publishes what the folder of a checkout of the commit publishes.
equals() {
  local store=$WORK/equals
  rm -rf "$store" "$WORK/checkout"
  mkdir "$WORK/checkout"
  g archive "$3" catalogs/a | tar -x -C "$WORK/checkout"
  is "$1 is published" "$(git_poll "$store" "$2")" "published 10"
  is "$1 has the content of its checkout" "$(content_hash "$store" g)" "$(hash_of "$WORK/checkout/catalogs/a")"
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

access() {
  GIT_CA=$REGISTRY_CA refused "an unknown authority" '--ca-file' "owner/repo.git#main:catalogs/a"
}

# repository NAME [OPTION...]: an empty one with a tree of its own in $WORK/NAME.
repository() {
  git init --quiet --bare --initial-branch main "${@:2}" "$REPOS/$1.git"
  git init --quiet --initial-branch main "${@:2}" "$WORK/$1"
  mkdir -p "$WORK/$1/configs"
  cp -r "$TREE/catalogs/a/." "$WORK/$1/configs"
}

publish_repository() {
  git -C "$WORK/$1" add --all
  git -C "$WORK/$1" commit --quiet -m "$1"
  git -C "$WORK/$1" push --quiet "$REPOS/$1.git" main
}

contents() {
  repository sha256 --object-format sha256
  publish_repository sha256
  refused "a repository of SHA-256" 'sha256' "sha256.git"
}

# peak_kb COMMAND...: the largest memory of the command, in kB.
peak_kb() {
  python3 -c 'import resource, subprocess, sys; subprocess.run(sys.argv[1:], capture_output=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@"
}

# Git inflates the pack and writes no file. Half a gigabyte of zeros is half a megabyte in a pack; 64 MB of it may be read.
bombs() {
  local peak usual command
  command=("$CATALOG_MIRROR" poll --auth-file "$GIT_AUTH" --ca-file "$GIT_CA")
  usual=$(peak_kb "${command[@]}" --store "$WORK/usual" --catalog "g=git:$GIT/owner/repo.git#main:catalogs/a")
  repository bomb
  truncate -s 512M "$WORK/bomb/configs/zeros.json"
  git -C "$WORK/bomb" config core.bigFileThreshold 1m
  publish_repository bomb
  rm "$WORK/bomb/configs/zeros.json"
  refused "a bomb" 'exceeds the limit ratio of 200' "bomb.git#main:configs"
  peak=$(peak_kb "${command[@]}" --store "$WORK/bombed" --catalog "g=git:$GIT/bomb.git#main:configs")
  is "a bomb takes no more memory than a catalog, within 32 MB ($peak kB, $usual kB)" "$((peak < usual + 32768))" 1
  say "a pack of $(du -sk "$REPOS/bomb.git/objects" | cut -f1) kB was refused with a peak of $peak kB"
}

start_git_server
make_repository
references
access
contents
bombs
