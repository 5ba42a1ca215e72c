// Tests of the stage table: stacks of perf, and the stage of each stack.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldStacks, parseCounts, shortName } from '../lib/perf.mjs';
import { stageOf, stageTable } from '../lib/stages.mjs';

test('equal stacks are counted together, from the outermost frame to the innermost', async () => {
  const lines = ['  7f1 recv', '  55a hostler::listen::client::Http1Client::poll_head', '', '  7f1 recv', '  55b hostler::listen::client::Http1Client::poll_head', '', ' 1 main'];
  const stacks = await foldStacks(lines);
  assert.deepEqual([...stacks], [['hostler::listen::client::Http1Client::poll_head;recv', 2], ['main', 1]]);
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
  const calls = parseCounts('2000;;syscalls:sys_enter_recvfrom;1;100.00\n0;;syscalls:sys_enter_open;1;100.00\n');
  const table = stageTable(stacks, { cell: 'a cell', us: 10, calls, requests: 1000 });
  assert.match(table, /^a cell: 10\.00 us of CPU for a request; 4 samples$/m);
  assert.match(table, /^\| kernel: send, member \| 75\.0 % \| 7\.50 \|$/m);
  assert.match(table, /^System calls for a request: recvfrom 2\.00$/m);
});
