// Tests of the stage table: stacks of perf, and the stage of each stack.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldStacks, parseCounts, parseFunctions, shortName } from '../lib/perf.mjs';
import { stageOf, stageTable } from '../lib/stages.mjs';

test('equal stacks are counted together, from the outermost frame to the innermost', async () => {
  const lines = ['  7f1 recv (/lib/libc.so)', '  55a hostler::listen::client::Http1Client::poll_head (/bin/x)', '', '  7f1 recv (/lib/libc.so)', '  55b hostler::listen::client::Http1Client::poll_head (/bin/x)', '', ' 1 main (/bin/x)'];
  const stacks = await foldStacks(lines);
  assert.deepEqual([...stacks], [['hostler::listen::client::Http1Client::poll_head;recv', 2], ['main', 1]]);
});

test('a frame is all functions that the compiler has put into one, and a caller is looked up before its return address', async () => {
  const lines = ['  7f1 send (/lib/libc.so)', '  21 poll (/bin/x)', '  31 main (/bin/x)', ''];
  const asked = [];
  const name = (addresses) => {
    asked.push(...addresses);
    return parseFunctions('0x0000000000000020\ntokio::task::poll\n/w/crates/hostler-wire/src/field/mod.rs:1\nread<A::B>\n/registry/src/x/tokio-1.54.1/src/io.rs:7 (discriminator 2)\ntokio::task::poll\n/r/tokio-1.54.1/src/task.rs:7\n0x30\n??\n??:0\n');
  };
  assert.deepEqual([...(await foldStacks(lines, '/bin/x', name))], [['main;tokio::task::poll;tokio::io::read;hostler_wire::field::inlined;send', 1]]);
  assert.deepEqual(asked, [0x30, 0x20]);
});

test('the name of a function has no offset, no hash and no type arguments', () => {
  assert.equal(shortName('core::Core<T,S>::poll::h0123456789abcdef'), 'core::Core::poll');
  assert.equal(shortName('<a::B as c::D<E>>::f+0x1f'), '<a::B as c::D>::f');
});

test('a system call belongs to the member or to the client by the socket, and all else to the innermost frame that a stage names', () => {
  const user = 'tokio::runtime::task::core::Core::poll;hostler_engine::proxy::call::Call::poll_head';
  assert.equal(stageOf(`${user};entry_SYSCALL_64_after_hwframe;__x64_sys_sendto;unix_stream_sendmsg;copy_from_user`), 'kernel: send, member');
  assert.equal(stageOf(`${user};entry_SYSCALL_64_after_hwframe;__x64_sys_recvfrom;tcp_recvmsg`), 'kernel: recv, client');
  assert.equal(stageOf(`${user};__memcpy_avx_unaligned_erms`), 'memcpy');
  assert.equal(stageOf(user), 'member connection');
  assert.equal(stageOf('main;unheard_of'), 'other');
});

test('the table gives shares of the CPU of a request and the system calls of a request', () => {
  const stacks = new Map([['main;malloc', 1], ['main;unix_stream_sendmsg', 3]]);
  assert.deepEqual(parseCounts('2000;;syscalls:sys_enter_recvfrom;1;100.00\n0;;syscalls:sys_enter_open;1;100.00\n'), { recvfrom: 2000 });
  const table = stageTable([{ name: 'hostler', stacks, us: 10, calls: new Map([['recvfrom', 2]]) }], 'a cell');
  assert.match(table, /^a cell: 10\.00 us of CPU for a request; 4 samples$/m);
  assert.match(table, /^\| kernel: send, member \| 75\.0 % \| 7\.50 \|$/m);
  assert.match(table, /^System calls for a request: recvfrom 2\.00$/m);
});

test('two builds stand beside each other, with the stages of both', () => {
  const calls = new Map([['recvfrom', 2]]);
  const before = { name: 'before', stacks: new Map([['main;malloc', 1], ['main;unix_stream_sendmsg', 1]]), us: 10, calls };
  const after = { name: 'after', stacks: new Map([['main;unix_stream_sendmsg', 4]]), us: 8, calls };
  const table = stageTable([before, after], 'a cell');
  assert.match(table, /^\| stage \| before: share \| us a request \| after: share \| us a request \|$/m);
  assert.match(table, /^\| kernel: send, member \| 50\.0 % \| 5\.00 \| 100\.0 % \| 8\.00 \|$/m);
  assert.match(table, /^\| malloc \| 50\.0 % \| 5\.00 \| 0\.0 % \| 0\.00 \|$/m);
  assert.match(table, /^after: System calls for a request: recvfrom 2\.00$/m);
});
