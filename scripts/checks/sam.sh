# checkov scans the AWS template, and sam builds both of its functions, for the processor that they run on. A long check, because it
# compiles the tree once more, and the scanner takes a minute to install and to start. LAMBDA_ARCH names the processor (arm64 or
# x86_64); the other one differs in a flag.
# shellcheck shell=bash

ARCH=${LAMBDA_ARCH:-arm64} MACHINE=aarch64
[[ $ARCH == arm64 ]] || MACHINE=x86-64
need_debian file=file
need_python_tools
need_cargo_lambda
need_lambda_target "$ARCH"
export SAM_CLI_TELEMETRY=0
need_checkov
AWS=$ROOT/infra/aws
succeeds "checkov finds nothing that is not explained" checkov --config-file "$AWS/.checkov.yaml" --file "$AWS/template.yaml"
# Not optimised: the check is that it builds, and that takes a third of the time.
succeeds "sam build builds both functions" env CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64 \
  sam build --template-file "$AWS/template.yaml" --build-dir "$WORK/built" --parameter-overrides "Architecture=$ARCH"
for function in Poller Reader; do
  matches "$function is a program for $ARCH" "$(file -b "$WORK/built/$function/bootstrap")" "ELF 64-bit.*$MACHINE"
done
