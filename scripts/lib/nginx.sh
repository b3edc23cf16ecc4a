# nginx over a folder, as a plain static file server.
# shellcheck shell=bash

# start_nginx FOLDER [SETTINGS-OF-HTTP [SETTINGS-OF-SERVER [ssl]]]: NGINX is its URL.
start_nginx() {
  local home port
  port=$(free_port)
  home=$WORK/nginx-$port
  mkdir -p "$1" "$home"
  # If root starts nginx, its workers run as a user who cannot read the folder.
  cat >"$home/nginx.conf" <<CONF
daemon off;
user $(id -un) $(id -gn);
pid $home/pid;
worker_processes 2;
error_log $home/log;
events {}
http {
  access_log off; ${2:-}
  client_body_temp_path $home/body; proxy_temp_path $home/proxy; fastcgi_temp_path $home/fastcgi;
  uwsgi_temp_path $home/uwsgi; scgi_temp_path $home/scgi;
  server { listen 127.0.0.1:$port ${4:-}; root $1; ${3:-} }
}
CONF
  start "$home/out" nginx -c "$home/nginx.conf" -e "$home/log"
  NGINX=http${4:+s}://127.0.0.1:$port
  wait_for 10 curl -sk "$NGINX/"
}
