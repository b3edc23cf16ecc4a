# S3 servers on loopback: MinIO and moto.
# shellcheck shell=bash

# Of servers that live for one run and listen on loopback only.
S3_KEY=throwaway-key S3_SECRET=throwaway-secret-key

# use_s3 URL [CA]: every AWS client from now on asks this server.
use_s3() {
  export AWS_ACCESS_KEY_ID=$S3_KEY AWS_SECRET_ACCESS_KEY=$S3_SECRET AWS_ENDPOINT_URL_S3=$1 AWS_CA_BUNDLE=${2:-}
  export AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null
}

# start_minio [plain]: with a certificate of its own authority unless it is plain; MINIO_URL and MINIO_CA are set afterwards.
start_minio() {
  local home=$WORK/minio port
  need_minio
  port=$(free_port)
  mkdir -p "$home/certs" "$home/data"
  MINIO_URL=http://127.0.0.1:$port MINIO_CA=
  if [[ ${1:-} != plain ]]; then
    make_certificates "$home/tls"
    cp "$home/tls/tls.crt" "$home/certs/public.crt"
    cp "$home/tls/tls.key" "$home/certs/private.key"
    MINIO_URL=https://127.0.0.1:$port MINIO_CA=$home/tls/ca.crt
  fi
  start "$home/minio.log" env MINIO_ROOT_USER=$S3_KEY MINIO_ROOT_PASSWORD=$S3_SECRET MINIO_BROWSER=off MINIO_UPDATE=off \
    minio server --quiet --certs-dir "$home/certs" --address "127.0.0.1:$port" "$home/data"
  wait_for 30 curl -sf ${MINIO_CA:+--cacert "$MINIO_CA"} "$MINIO_URL/minio/health/ready"
}

# start_moto [tls]: MOTO_URL is set afterwards, with a certificate of its own authority MOTO_CA too.
start_moto() {
  local home=$WORK/moto port certificate=()
  need_python_tools
  port=$(free_port)
  MOTO_URL=http://127.0.0.1:$port MOTO_CA=
  if [[ ${1:-} == tls ]]; then
    make_certificates "$home"
    MOTO_URL=https://127.0.0.1:$port MOTO_CA=$home/ca.crt certificate=(--ssl-cert "$home/tls.crt" --ssl-key "$home/tls.key")
  fi
  start "$WORK/moto.log" "$VENV/bin/python3" -B "$ROOT/scripts/lib/moto_s3.py" -H 127.0.0.1 -p "$port" "${certificate[@]}"
  wait_for 30 curl -sf ${MOTO_CA:+--cacert "$MOTO_CA"} "$MOTO_URL/moto-api/"
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
