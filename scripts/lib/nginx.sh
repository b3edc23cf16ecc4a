# nginx over a folder, as a plain static file server.
# shellcheck shell=bash

# start_nginx FOLDER [SETTINGS-OF-HTTP [SETTINGS-OF-SERVER]]: NGINX is its URL.
start_nginx() {
  local port
  port=$(free_port)
  mkdir -p "$1"
  # If root starts nginx, its workers run as a user who cannot read the folder.
  cat >"$WORK/nginx.conf" <<CONF
daemon off;
user $(id -un) $(id -gn);
pid $WORK/nginx.pid;
worker_processes 2;
error_log $WORK/nginx.log;
events {}
http {
  access_log off; ${2:-}
  client_body_temp_path $WORK/body; proxy_temp_path $WORK/proxy; fastcgi_temp_path $WORK/fastcgi;
  uwsgi_temp_path $WORK/uwsgi; scgi_temp_path $WORK/scgi;
  server { listen 127.0.0.1:$port; root $1; ${3:-} }
}
CONF
  start "$WORK/nginx.out" nginx -c "$WORK/nginx.conf" -e "$WORK/nginx.log"
  NGINX=http://127.0.0.1:$port
  wait_for 10 curl -s "$NGINX/"
}
