// Which stage of a request a stack belongs to, and the table of the stages. Knows the functions of Hostler by their names,
// and no processes.

/**
 * What the kernel does, tried in this order. The members of the scenario are on Unix sockets and the clients on TCP, so the
 * kernel's own functions tell which of them a system call is for.
 */
const KERNEL = [
  ['kernel: epoll', /epoll_(p?wait|ctl)|^do_epoll/],
  ['kernel: send, member', /^unix_stream_sendmsg/],
  ['kernel: recv, member', /^unix_stream_(recvmsg|read)/],
  ['kernel: send, client', /^(inet6?|tcp)_sendmsg/],
  ['kernel: recv, client', /^(inet6?|tcp)_recvmsg/],
  ['kernel: system call entry, descriptor look-up, interrupts', /^(entry_SYSCALL|do_syscall|syscall_|x64_sys_call|asm_|irqentry|__x64_sys|ret_from_fork)/],
];

/** Stages of our own code, tried from the innermost frame outwards. The first rule that matches a frame decides. */
const STAGES = [
  ['clock', /clock_gettime|Timespec|Instant|\bread_hpet|__vdso/],
  ['malloc', /^_int_(malloc|free)|^malloc|^free$|^cfree|^realloc|^calloc|_rdl_(alloc|dealloc|realloc)|^unlink_chunk|tcache/],
  ['memcpy', /^__mem(cpy|move|set|cmp)|^memcpy|^memmove|^memset|^bcmp/],
  ['request head: parse', /RequestHead|Http1Client::(poll_head|next_head)/],
  ['response head: parse', /ResponseHead|MemberConnection::poll_head|response_body/],
  ['head of either side: parse', /httparse|take_fields|field::name|HeadScan|fast_head|Fields::(push|mark_listed)|hostler_wire::(head|field|scan|grammar)/],
  ['request head: check', /listen::check|body::declared|wants_keep_alive/],
  ['write heads', /write_head|write_answer|copy_lines|write_status_line|request::(fate|needs_trust|write)|write_forwarding|write_field|hostler_wire::(write|compose)/],
  ['counters and log', /meter|hdrhistogram|Counters|log_facts|journal|access_line|Shard.*settle|Gateway::settle|exchange::(durations|ledger)/],
  ['pool', /hostler_dispatch|QueueWait/],
  ['member connection', /hostler_engine::proxy|MemberConnection|Endpoint/],
  ['gateway, route, exchange', /hostler_engine|arc_swap|hostler_address/],
  ['delivery and client connection', /hostler::|hostler_wire|hostler_coding/],
  ['tokio and mio', /tokio|mio|std::thread::local|Socket|std::net|core::task/],
];

/** The stage of a stack "outermost;...;innermost". */
export function stageOf(stack) {
  const frames = stack.split(';').reverse();
  const inKernel = KERNEL.find(([, pattern]) => frames.some((frame) => pattern.test(frame)));
  if (inKernel) return inKernel[0];
  for (const frame of frames) {
    const stage = STAGES.find(([, pattern]) => pattern.test(frame));
    if (stage) return stage[0];
    if (/^(__libc_)?(send|recv|epoll_wait)$|cancel/.test(frame)) return 'wrappers of send and recv';
  }
  return 'other';
}

/**
 * The table as Markdown, of one build or of several beside each other. A column is { name, stacks, us, calls }. `us`: CPU of a
 * request without perf. `calls`: system calls of a request by name.
 */
export function stageTable(columns, cell) {
  const builds = columns.map(({ stacks, us, ...column }) => {
    const counts = new Map();
    for (const [stack, count] of stacks) counts.set(stageOf(stack), (counts.get(stageOf(stack)) ?? 0) + count);
    const all = sum([...counts.values()]);
    return { ...column, us, all, counts, part: (count) => `${((100 * count) / all).toFixed(1)} % | ${((us * count) / all).toFixed(2)}` };
  });
  const line = (name, count) => `| ${name} | ${builds.map((build) => build.part(count(build))).join(' | ')} |`;
  const ofKernel = ({ counts }) => sum([...counts].filter(([name]) => name.startsWith('kernel')).map(([, count]) => count));
  const share = (stage) => Math.max(...builds.map(({ counts, all }) => (counts.get(stage) ?? 0) / all));
  const stages = [...new Set(builds.flatMap(({ counts }) => [...counts.keys()]))].sort((one, other) => share(other) - share(one));
  const label = ({ name }, text) => (builds.length > 1 ? `${name}: ${text}` : text);
  return [
    ...builds.flatMap((build) => [`${label(build, cell)}: ${build.us.toFixed(2)} us of CPU for a request; ${build.all} samples`, '']),
    `| stage | ${builds.map((build) => `${label(build, 'share')} | us a request`).join(' | ')} |`,
    `|---|${builds.map(() => '---|---|').join('')}`,
    line('all of the kernel', ofKernel),
    line('all of Hostler', (build) => build.all - ofKernel(build)),
    ...stages.map((stage) => line(stage, ({ counts }) => counts.get(stage) ?? 0)),
    ...builds.flatMap((build) => ['', `${label(build, 'System calls for a request')}: ${callsText(build.calls)}`]),
  ].join('\n');
}

function callsText(calls) {
  const shown = [...calls].filter(([, count]) => count >= 0.005).sort(([, a], [, b]) => b - a);
  return shown.map(([name, count]) => `${name} ${count.toFixed(2)}`).join(', ');
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
