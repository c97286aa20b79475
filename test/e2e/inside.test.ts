/** `drover forward`, `ps` and `profile` with real processes and real profilers. */
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, startJourney, until, type Journey } from '../support/journey.ts';
import { programsAreHere } from '../support/programs.ts';
import { insidePython } from '../support/python.ts';

const perfIsHere = programsAreHere({ perf: 'linux-perf' });
const bin = insidePython();
const NODE = process.execPath;

const PYTHON = `
def busy_inside(n):
    return sum(i * i for i in range(n))
def busy_outside():
    while True:
        busy_inside(2000)
busy_outside()
`;
const SCRIPT = `
function busyInside(n) { let sum = 0; for (let i = 0; i < n; i++) sum += i % 7; return sum; }
function busyOutside() { busyInside(3e6); setImmediate(busyOutside); }
busyOutside();
`;

let journey: Journey;
beforeAll(async () => {
  journey = await startJourney({ args: ['--resources', 'cpus=8,mem=8Gi'] });
});
afterAll(() => journey.close());

async function running(command: string[]): Promise<string> {
  const id = await journey.submit({ command, graceMs: 300 });
  await journey.running(id);
  return id;
}

function file(name: string, text: string): string {
  const place = path.join(journey.home, name);
  writeFileSync(place, text);
  return place;
}

async function profile(id: string, ...options: string[]): Promise<string> {
  const svg = path.join(journey.home, `${id}.svg`);
  const ended = await journey.drover('profile', id, '--seconds', '1', '-o', svg, ...options);
  expect([ended.code, ended.stdout]).toEqual([0, `${svg}\n`]);
  return readFileSync(svg, 'utf8');
}

test('forward: a real server through a local port; a clear word when there is none', async () => {
  const server = `import http.server
h = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print(h.server_port, flush=True)
h.serve_forever()`;
  const id = await running(['python3', '-c', server]);
  const text = await until('it serves', async () => {
    const { stdout } = await journey.drover('logs', id);
    return /^\d+\n/.test(stdout) && stdout;
  });
  const forward = journey.start(['forward', id, `0:${text.trim()}`]);
  const local = await until(
    'it is forwarded',
    () => /127\.0\.0\.1:\d+/.exec(forward.stdout())?.[0],
  );
  const answers = await Promise.all(
    Array.from({ length: 10 }, async () => (await fetch(`http://${local}/`)).status),
  );
  expect(answers).toEqual(Array.from({ length: 10 }, () => 200));
  forward.child.kill('SIGINT');
  expect((await forward.ended).code).toBe(0);

  const nothing = journey.start(['forward', id, '0:1']);
  await until('it says so', () => nothing.stderr().includes('nothing listens on port 1 yet'));
  const port = await until('it listens', () => /127\.0\.0\.1:\d+/.exec(nothing.stdout())?.[0]);
  await expect(fetch(`http://${port}/`)).rejects.toThrow();
  await until('it says why', () =>
    nothing.stderr().includes("nothing listens on port 1 of the task's machine"),
  );
  nothing.child.kill('SIGTERM');
  await nothing.ended;
  const taken = await journey.drover('forward', id, `${new URL(journey.url).port}:80`);
  expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining('is in use')]);
  await journey.client.cancelJob(id);
  await journey.ended(id);
  const late = await journey.drover('forward', id, '0:80');
  expect([late.code, late.stderr]).toEqual([1, expect.stringMatching(/CONFLICT|NOT_FOUND/)]);
});

const ECHO = `
const { createServer } = require('node:http');
const server = createServer((request, response) => {
  const { method, url, headers } = request;
  let bytes = 0;
  request.on('data', (piece) => (bytes += piece.length)).on('end', () => {
    response.setHeader('set-cookie', ['mine=1', 'drover_proxy=stolen; Path=/']);
    response.end(JSON.stringify({ method, url, headers, bytes }));
  });
});
server.on('upgrade', (request, socket) => {
  socket.end('HTTP/1.1 101 Switching Protocols\\r\\nconnection: upgrade\\r\\n' +
    'upgrade: echo\\r\\n\\r\\n' + (request.headers.cookie || 'no cookie'));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

test('proxy: what passes to a page of a job, and what stays', async () => {
  const id = await running([NODE, '-e', ECHO]);
  const port = await until('it serves', async () => {
    const { stdout } = await journey.drover('logs', id);
    return /^\d+\n/.exec(stdout)?.[0].trim();
  });
  const { body: made } = await journey.api('POST /v1/tokens', {
    name: 'browser',
    scopes: ['jobs:read', 'jobs:manage'],
  });
  const { id: tokenId, secret } = made['data'] as { id: string; secret: string };
  const endpoint = `${id}.0:${port}`;
  const login = { endpoint, next: 'lab?x=1' };
  const link = await call(journey.url, 'POST /v1/proxy/logins', login, { token: secret });
  const opened = await fetch(`${journey.url}${link.body['data'].path}`, { redirect: 'manual' });
  expect([opened.status, opened.headers.get('location')]).toEqual([
    303,
    `/proxy/${endpoint}/lab?x=1`,
  ]);
  const cookie = `${opened.headers.getSetCookie()[0]!.split(';')[0]}; other=2`;
  const place = `${journey.url}/proxy/${endpoint}/a%20b?c=d`;
  const answer = await fetch(place, {
    method: 'POST',
    body: Buffer.alloc(3_000_000),
    headers: { cookie, authorization: 'token of-the-page', 'content-type': 'text/plain' },
  });
  expect(answer.headers.getSetCookie()).toEqual(['mine=1']);
  // A page has its own policy, or none; ours would keep its scripts from running.
  expect(answer.headers.get('content-security-policy')).toBeNull();
  const seen = (await answer.json()) as { url: string; bytes: number; headers: object };
  expect(seen).toMatchObject({ method: 'POST', url: `/proxy/${endpoint}/a%20b?c=d`, bytes: 3e6 });
  expect(seen.headers).toMatchObject({
    cookie: 'other=2',
    authorization: 'token of-the-page',
    'x-forwarded-prefix': `/proxy/${endpoint}/`,
  });
  const byToken = await call(journey.url, `GET /proxy/${endpoint}/`, undefined, { token: secret });
  expect(JSON.parse(byToken.text)).not.toHaveProperty('headers.authorization');

  const upgrade = (origin: string): Promise<string> => upgradeBy(place, cookie, origin);
  expect(await upgrade(journey.url)).toMatch(/^HTTP\/1.1 101 .*other=2$/s);
  expect(await upgrade('http://evil.example')).toMatch(/^HTTP\/1.1 403 /);
  // For this endpoint alone, and no longer than the token.
  const elsewhere = await fetch(`${journey.url}/proxy/${id}.0:1/`, { headers: { cookie } });
  expect(elsewhere.status).toBe(401);
  expect(elsewhere.headers.get('content-security-policy')).toContain("'none'");
  await journey.api(`DELETE /v1/tokens/${tokenId}`);
  expect((await fetch(place, { headers: { cookie } })).status).toBe(401);
  await journey.client.cancelJob(id);
});

function upgradeBy(url: string, cookie: string, origin: string): Promise<string> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect(Number(port), hostname);
  const lines = [`GET ${pathname} HTTP/1.1`, `host: ${hostname}:${port}`, 'connection: upgrade'];
  socket.write(
    [...lines, 'upgrade: echo', `cookie: ${cookie}`, `origin: ${origin}`, '', ''].join('\r\n'),
  );
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    socket.on('end', () => resolve(text)).on('error', reject);
  });
}

test('ps: what runs in the task, the busiest first, and nothing of others', async () => {
  const id = await running(['sh', '-c', 'sleep 300 & while :; do :; done']);
  const { code, stdout } = await journey.drover('ps', id, '--json');
  expect(code).toBe(0);
  const { processes } = JSON.parse(stdout) as {
    processes: { pid: number; cpuPercent: number; rssBytes: number; command: string }[];
  };
  expect(processes[0]!.command).toContain('while :');
  expect(processes[0]!.cpuPercent).toBeGreaterThan(5);
  expect(processes[0]!.rssBytes).toBeGreaterThan(100_000);
  const commands = processes.map(({ command }) => command);
  expect(commands).toContain('sleep 300');
  expect(commands.filter((command) => /drover.ts/.test(command))).toEqual([]);
  const table = await journey.drover('ps', id);
  expect(table.stdout).toMatch(/^PID +PARENT +STATE +CPU% +MEMORY .*COMMAND\n/);
  expect(table.stdout).toContain('sleep 300');
  await journey.client.cancelJob(id);
});

describe('profile', () => {
  test.runIf(bin)('Python by py-spy of its own environment', async () => {
    const id = await running([path.join(bin ?? '', 'python'), file('busy.py', PYTHON)]);
    const svg = await profile(id);
    expect(svg).toMatch(/^<svg .*/);
    expect(svg).toContain('busy_outside');
    expect(svg).toMatch(/busy_inside \(busy\.py:\d+\) \(\d+ samples/);
    const json = await journey.drover('profile', id, '--seconds', '1', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({ tool: 'py-spy', task: `${id}.0` });
    await journey.client.cancelJob(id);
  });

  test('Python without py-spy: it says what to install', async () => {
    const id = await running(['/usr/bin/env', 'python3', file('busy.py', PYTHON)]);
    const { code, stderr } = await journey.drover('profile', id, '--seconds', '1');
    expect([code, stderr]).toEqual([1, expect.stringContaining('pip install py-spy')]);
    await journey.client.cancelJob(id);
  });

  test('Node by its own profiler, which leaves no debugger open', async () => {
    const id = await running([NODE, file('busy.js', SCRIPT)]);
    const svg = await profile(id);
    expect(svg).toContain('busyOutside (busy.js:3)');
    const again = await profile(id);
    expect(again).toContain('busyInside (busy.js:2)');
    const { stdout } = await journey.drover('ps', id, '--json');
    const [{ pid }] = (JSON.parse(stdout) as { processes: { pid: number }[] }).processes as [
      { pid: number },
    ];
    await until('nothing listens', () => {
      const listening = readFileSync(`/proc/${pid}/net/tcp`, 'latin1');
      return !/0100007F:240D 00000000:0000 0A/.test(listening);
    });
    expect((await journey.client.getJob(id)).state).toBe('RUNNING');
    await journey.client.cancelJob(id);
  });

  test.runIf(perfIsHere)('anything else by perf', async () => {
    const id = await running(['sh', '-c', 'while :; do :; done']);
    const svg = await profile(id);
    expect(svg).toContain('by perf');
    expect(svg).toMatch(/<title>(ba|da)?sh \(\d+ samples, /);
    await journey.client.cancelJob(id);
  });

  test('wrong input', async () => {
    const id = await running(['sleep', '300']);
    const [pid, seconds, tool] = await Promise.all([
      journey.drover('profile', id, '--pid', String(process.pid)),
      journey.drover('profile', id, '--seconds', '100000'),
      journey.drover('profile', id, '--tool', 'gdb'),
    ]);
    expect([pid.code, pid.stderr]).toEqual([1, expect.stringContaining('is none of this task')]);
    expect([seconds.code, tool.code]).toEqual([2, 2]);
    await journey.client.cancelJob(id);
  });
});
