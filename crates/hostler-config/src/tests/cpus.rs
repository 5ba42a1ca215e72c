//! Mistakes in `cpu`, and the line that tells them.

use expect_test::expect;

use super::check;

#[test]
fn a_list_of_cpus_names_cpus_that_exist() {
    check(
        "[pools.a]\ncommand = \"x\"\ncpu = \"0 1-3\"\n",
        expect!["hostler.toml:3:7: pools.a.cpu: there is no CPU 3; this machine has the CPUs 0-2"],
    );
    check(
        "[pools.a]\ncommand = \"x\"\ncpu = \"0 x\"\n",
        expect![[
            r#"hostler.toml:3:7: pools.a.cpu: "x" is not the number of a CPU; expected "auto", "off" or lists of CPUs such as "0-1 2-3""#
        ]],
    );
    check(
        "[pools.a]\nmembers = [\"10.0.0.5:80\"]\ncpu = \"auto\"\n",
        expect![
            "hostler.toml:3:1: pools.a.cpu: not allowed for members, because Hostler does not start them"
        ],
    );
}
