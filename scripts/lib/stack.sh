# What the scripts for AWS share: the stack, its outputs, and the tools.
# shellcheck shell=bash

# Versions that are known to work together; what is on the path already is taken as it is.
need_aws() { need_tool aws awscli==1.46.2; }
need_sam() { need_tool sam aws-sam-cli==1.170.0; }
need_cargo_lambda() {
  need_tool cargo-lambda cargo-lambda==1.9.2
  # It looks for zig with the first python3 of the path, which is not the one that came with it.
  [[ $(command -v cargo-lambda) != "${VENV:-none}"/* ]] || export CARGO_ZIGBUILD_PYTHON_PATH=$VENV/bin/python3
}

# rust_target ARCHITECTURE: makes sure that the compiler knows it.
need_rust_target() {
  local target=aarch64-unknown-linux-gnu
  [[ $1 == x86_64 ]] && target=x86_64-unknown-linux-gnu
  ! command -v rustup >/dev/null || rustup --quiet target add "$target"
}

# use_stack NAME: sets OUTPUTS, a JSON object; fails if there is no such stack.
use_stack() {
  OUTPUTS=$(aws cloudformation describe-stacks --stack-name "$1" --output json |
    jq '.Stacks[0].Outputs // [] | map({key: .OutputKey, value: .OutputValue}) | from_entries')
}

# output NAME: one of them.
output() {
  jq -er --arg name "$1" '.[$name]' <<<"$OUTPUTS" || die "the stack has no output $1: is it one of infra/aws?"
}

# option_value OPTION VALUE...: the value of an option that needs one.
option_value() {
  (($# >= 2)) || die "$1 needs a value"
  printf '%s' "$2"
}
