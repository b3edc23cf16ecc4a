# S3 servers on loopback: MinIO and moto.
# shellcheck shell=bash

# Of servers that live for one run and listen on loopback only.
S3_KEY=throwaway-key S3_SECRET=throwaway-secret-key

# use_s3 URL [CA]: every AWS client from now on asks this server.
use_s3() {
  export AWS_ACCESS_KEY_ID=$S3_KEY AWS_SECRET_ACCESS_KEY=$S3_SECRET AWS_ENDPOINT_URL_S3=$1 AWS_CA_BUNDLE=${2:-}
  export AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null
}

# start_s3 SERVER [tls]: by run_SERVER, and every AWS client asks it from now on. S3_URL is set afterwards, and with tls S3_CA, an authority
# of its own.
start_s3() {
  PORT=$(free_port)
  HOME_OF=$WORK/$1-$PORT S3_URL=http://127.0.0.1:$PORT S3_CA=
  mkdir -p "$HOME_OF/certs" "$HOME_OF/data"
  if [[ ${2:-} == tls ]]; then
    make_certificates "$HOME_OF/tls"
    cp "$HOME_OF/tls/tls.crt" "$HOME_OF/certs/public.crt"
    cp "$HOME_OF/tls/tls.key" "$HOME_OF/certs/private.key"
    S3_URL=https://127.0.0.1:$PORT S3_CA=$HOME_OF/tls/ca.crt
  fi
  "run_$1"
  use_s3 "$S3_URL" "$S3_CA"
}

# run_SERVER: at $PORT, with its files in $HOME_OF. Further servers are in the part s3_servers.
run_moto() {
  local certificate=()
  need_python_tools
  [[ -z $S3_CA ]] || certificate=(--ssl-cert "$HOME_OF/certs/public.crt" --ssl-key "$HOME_OF/certs/private.key")
  start "$HOME_OF/log" "$VENV/bin/python3" -B "$LIB/moto_s3.py" -H 127.0.0.1 -p "$PORT" "${certificate[@]}"
  wait_for 60 curl -sf ${S3_CA:+--cacert "$S3_CA"} "$S3_URL/moto-api/"
}
run_minio() {
  need_minio
  start "$HOME_OF/log" env MINIO_ROOT_USER="$S3_KEY" MINIO_ROOT_PASSWORD="$S3_SECRET" MINIO_BROWSER=off MINIO_UPDATE=off \
    minio server --quiet --certs-dir "$HOME_OF/certs" --address "127.0.0.1:$PORT" "$HOME_OF/data"
  wait_for 60 curl -sf ${S3_CA:+--cacert "$S3_CA"} "$S3_URL/minio/health/ready"
}

# s3_curl ARGUMENT... /PATH: a signed request to the server in use.
s3_curl() {
  # Some servers want the hash of the body, which older curls leave out.
  curl -sS ${AWS_CA_BUNDLE:+--cacert "$AWS_CA_BUNDLE"} --aws-sigv4 aws:amz:us-east-1:s3 --user "$S3_KEY:$S3_SECRET" -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' \
    "${@:1:$#-1}" "$AWS_ENDPOINT_URL_S3${*: -1}"
}

make_bucket() { s3_curl -f -X PUT "/$1"; }

# s3_object PLACE KEY [CURL-OPTION...]: the stored bytes.
s3_object() { s3_curl -f "${@:3}" "/${1#s3://}/$2"; }

# s3_field PLACE KEY NAME: a header that the server sends with an object.
s3_field() { s3_object "$1" "$2" -o /dev/null -D - | tr -d '\r' | sed -n "s/^$3: //Ip"; }
