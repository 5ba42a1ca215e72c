#!/bin/sh
# Cargo calls this in place of rustc (build.rustc-wrapper in .cargo/config.toml). If the build is optimised and the compiler is
# the one of rustc.txt, it adds the profile. Else it changes nothing. HOSTLER_PGO=off builds without the profile.
here=${0%/*}
compiler=$1
shift
case " $* " in
*profile-generate* | *profile-use*) ;; # the caller has a profile of its own
*" opt-level=3 "*)
	if [ "${HOSTLER_PGO-}" != off ] && [ "$("$compiler" -vV)" = "$(cat "$here/rustc.txt")" ]; then
		# Functions that have changed since then are compiled without a profile. That is no reason for a warning.
		set -- "$@" "-Cprofile-use=$here/hostler.profdata" -Cllvm-args=-no-pgo-warn-mismatch
	fi
	;;
esac
exec "$compiler" "$@"
