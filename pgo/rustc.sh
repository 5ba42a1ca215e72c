#!/bin/sh
# Cargo calls this in place of rustc (build.rustc-wrapper in .cargo/config.toml). It gives each crate of an optimised build a name that
# stays, and adds the profile to what is built for speed, if the compiler is the one of rustc.txt. It changes no other build. HOSTLER_PGO=off builds without the profile.
here=${0%/*}
compiler=$1
shift
case " $* " in
*" opt-level="*) ;;
*) exec "$compiler" "$@" ;;
esac
# The name of a function contains a hash of "metadata". Cargo makes that from all dependencies, their features and the target, so a
# change of one of them would make the profile useless. Name, version and kind tell the crates of one program apart.
kind=
previous=
for argument in "$@"; do
	case "$previous $argument" in
	"--crate-type "*) kind=$kind-$argument ;;
	*" --test") kind=$kind-test ;;
	esac
	previous=$argument
done
for argument in "$@"; do
	shift
	case "$argument" in
	metadata=*) argument=metadata=${CARGO_PKG_NAME-}-${CARGO_PKG_VERSION-}-${CARGO_CRATE_NAME-}$kind ;;
	esac
	set -- "$@" "$argument"
done
# The host is not compared: the same profile serves each target.
same() { [ "$("$compiler" -vV | grep -v '^host:')" = "$(cat "$here/rustc.txt")" ]; }
case " $* " in
*profile-generate* | *profile-use*) ;; # the caller has a profile of its own
*" opt-level=3 "*)
	if [ "${HOSTLER_PGO-}" != off ] && same; then
		# Functions that have changed since then are compiled without a profile. That is no reason for a warning.
		set -- "$@" "-Cprofile-use=$here/hostler.profdata" -Cllvm-args=-no-pgo-warn-mismatch
	fi
	;;
esac
exec "$compiler" "$@"
