/** /install: the agent as a download, and the script that a bare machine joins with. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { utimesSync, writeFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { DroverError } from '../../lib/errors.ts';
import { GATEWAY_LIMITS } from '../limits.ts';
import { startTestGateway, type TestGateway } from '../testGateway.ts';
import { installRoutes } from './routes.ts';

/** In place of an agent: says how it was called and what it was given. */
const AGENT = `#!/bin/sh
[ "$1" = --version ] && exit 0
echo "argv $0 $*"
echo "token \${DROVER_JOIN_TOKEN-none}"
env | grep -c '^DROVER_\\(INSTALL_DIR\\|JOIN_TOKEN_FILE\\)' || :
`;
const SCRIPT = path.join(import.meta.dirname, 'join.sh');
const PLATFORM = process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64';
const sha256 = createHash('sha256').update(AGENT).digest('hex');

let root: string;
let bundle: string;
let gateway: TestGateway;
let downloads = 0;
/** So many of them are refused. */
let busy = 0;

beforeAll(async () => {
  root = mkdtempSync(path.join(tmpdir(), 'drover-install-'));
  bundle = path.join(root, `drover-agent-${PLATFORM}`);
  const folders = [path.join(root, 'absent'), root];
  gateway = await startTestGateway(
    {},
    {
      extraRoutes(app) {
        app.addHook('onRequest', async ({ url }) => {
          if (!/agent(\.gz)?\?/.test(url)) return;
          downloads++;
          if (downloads <= busy) throw new DroverError('TOO_MANY', 'busy');
        });
        const limits = { ...GATEWAY_LIMITS, installDownloads: 2 };
        installRoutes(app, { folders, publicUrl: '', limits });
      },
    },
  );
});
afterAll(async () => {
  await gateway.close();
  rmSync(root, { recursive: true });
});
beforeEach(() => {
  for (const name of readdirSync(root)) rmSync(path.join(root, name), { recursive: true });
  put(AGENT);
  downloads = 0;
  busy = 0;
});

function put(content: string | Buffer, hash = sha256): void {
  writeFileSync(bundle, content);
  writeFileSync(`${bundle}.gz`, gzipSync(content));
  const facts = { version: '0.1.0', sha256: hash, bytes: content.length };
  writeFileSync(`${bundle}.json`, JSON.stringify(facts));
}

const get = (where: string, headers: Record<string, string> = {}) =>
  gateway.call('GET', `${where}?platform=${PLATFORM}`, { token: null, headers });

test('the agent comes with its length, its checksum and in ranges, to anybody', async () => {
  const whole = await get('/install/agent');
  expect([whole.status, whole.text]).toEqual([200, AGENT]);
  expect(whole.headers.get('content-length')).toBe(String(AGENT.length));
  const etag = whole.headers.get('etag')!;
  expect(etag).toContain(sha256);
  expect((await get('/install/agent', { 'if-none-match': etag })).status).toBe(304);
  const part = await get('/install/agent', { range: 'bytes=2-8' });
  expect([part.status, part.text, part.headers.get('content-range')]).toEqual([
    206,
    '/bin/sh',
    `bytes 2-8/${AGENT.length}`,
  ]);
  const outside = await get('/install/agent', { range: 'bytes=99999-' });
  expect([outside.status, outside.json.code]).toEqual([416, 'RANGE_NOT_SATISFIABLE']);
  const url = `/install/agent?platform=${PLATFORM}`;
  const head = await gateway.call('HEAD', url, { token: null });
  expect([head.status, head.headers.get('content-length')]).toEqual([200, String(AGENT.length)]);
  const sum = await get('/install/agent.sha256');
  expect(sum.text).toBe(`${sha256}  drover-agent-${PLATFORM}\n`);
  const version = await get('/install/version');
  const facts = { version: '0.1.0', platform: PLATFORM, sha256, bytes: AGENT.length };
  expect(version.json.data).toEqual(facts);
});

test('without one it says how to make it', async () => {
  rmSync(`${bundle}.json`);
  for (const what of ['agent', 'agent.gz', 'agent.sha256', 'version']) {
    const { status, json } = await get(`/install/${what}`);
    const hint = expect.stringContaining('make agent-bundle');
    expect([what, status, json.code, json.hint]).toEqual([what, 404, 'NOT_FOUND', hint]);
  }
  const strange = await gateway.call('GET', '/install/agent?platform=../x', { token: null });
  expect(strange.status).toBe(400);
});

test('one that is just being replaced is not sent under the checksum of another', async () => {
  writeFileSync(bundle, `${AGENT}# newer\n`);
  expect((await get('/install/agent')).json.code).toBe('UNAVAILABLE');
});

test('installDownloads: more at once are told to wait', async () => {
  // More than sockets hold, and slow readers.
  put(Buffer.alloc(50_000_000));
  const url = `${gateway.url}/install/agent?platform=${PLATFORM}`;
  const slow = [1, 2].map(() => spawn('curl', ['-s', '--limit-rate', '10k', url]));
  const status = async () => (await get('/install/agent', { range: 'bytes=0-9' })).status;
  await expect.poll(status).toBe(429);
  const { json, headers } = await get('/install/agent');
  expect([json.code, headers.get('retry-after')]).toEqual(['TOO_MANY', '1']);
  for (const child of slow) child.kill('SIGKILL');
  await expect.poll(status).toBe(206);
});

test('join.sh names the gateway as it was asked for, and nothing that is no address', async () => {
  const { text, headers } = await gateway.call('GET', '/install/join.sh', { token: null });
  expect(headers.get('content-type')).toContain('text/x-shellscript');
  expect(text).toContain(`url='${gateway.url}'`);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { host: "x'; touch /tmp/x; '" };
    const asked = request(`${gateway.url}/install/join.sh`, { headers }, resolve);
    asked.on('error', reject).end();
  });
  answer.resume();
  expect(answer.statusCode).toBe(400);
});

test('shellcheck has nothing to say', () => {
  const { error, stdout } = spawnSync('shellcheck', ['-s', 'sh', SCRIPT]);
  if (!error) expect(stdout.toString()).toBe('');
  else if (process.env['CI'] === 'true') throw error;
  else console.warn('shellcheck is not installed: join.sh was not checked');
});

interface Joined {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** As a person types it: fetched, and run by sh. */
async function join(env: Record<string, string>, args = ''): Promise<Joined> {
  const line = `curl -fsS "${gateway.url}/install/join.sh" | sh -s -- ${args}`;
  const all = { PATH: process.env['PATH']!, DROVER_INSTALL_DIR: path.join(root, 'kept'), ...env };
  const child = spawn('/bin/sh', ['-c', line], { env: all });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, stdout, stderr };
}

test('one line of shell: the token by environment, one download for machines at once', async () => {
  const all = await Promise.all(
    Array.from({ length: 5 }, () => join({ DROVER_JOIN_TOKEN: 'drj_secret' }, '--name "a b"')),
  );
  const argv = `argv ${root}/kept/agent-${sha256} agent --join ${gateway.url} --name a b`;
  for (const one of all) {
    expect(one).toEqual({ code: 0, stdout: `${argv}\ntoken drj_secret\n0\n`, stderr: '' });
  }
  expect(downloads).toBe(1);
  expect(readdirSync(path.join(root, 'kept'))).toEqual([`agent-${sha256}`]);
  // What somebody damaged is not run but fetched anew.
  writeFileSync(path.join(root, 'kept', `agent-${sha256}`), '#!/bin/sh\necho no\n');
  expect((await join({ DROVER_JOIN_TOKEN: 't' })).stdout).toContain('token t');
  expect(downloads).toBe(2);
});

test('a machine that died while it fetched stops nobody for long', async () => {
  const lock = path.join(root, 'kept', `agent-${sha256}.lock`);
  mkdirSync(lock, { recursive: true });
  const longAgo = Date.now() / 1000 - 600;
  utimesSync(lock, longAgo, longAgo);
  expect((await join({})).stdout).toContain('token none');
  expect(readdirSync(path.join(root, 'kept'))).toEqual([`agent-${sha256}`]);
});

test('a server that is busy is asked again', async () => {
  busy = 8;
  const quick = { PATH: `${fakeTools({ sleep: 'exit 0' })}:${process.env['PATH']}` };
  expect(await join(quick)).toMatchObject({ code: 0 });
  expect(downloads).toBe(9);
});

test('the token from a file that only its owner may read', async () => {
  const file = path.join(root, 'token');
  writeFileSync(file, 'drj_filed\n', { mode: 0o600 });
  expect(await join({ DROVER_JOIN_TOKEN_FILE: file })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('token drj_filed\n0\n'),
  });
  chmodSync(file, 0o640);
  const open = await join({ DROVER_JOIN_TOKEN_FILE: file });
  expect([open.code, open.stderr]).toEqual([1, expect.stringContaining(`chmod 600 ${file}`)]);
  const absent = await join({ DROVER_JOIN_TOKEN_FILE: `${file}.absent` });
  expect([absent.code, absent.stderr]).toEqual([1, expect.stringContaining('cannot be read')]);
});

test('what does not fit its checksum never runs, and what went wrong is said', async () => {
  const quick = { PATH: `${fakeTools({ sleep: 'exit 0' })}:${process.env['PATH']}` };
  put(AGENT, '0'.repeat(64));
  const wrong = await join(quick);
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringContaining('does not fit its checksum'),
  ]);
  expect(readdirSync(path.join(root, 'kept'))).toEqual([]);
  rmSync(`${bundle}.json`);
  const none = await join(quick);
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('make agent-bundle')]);
  const far = await join({ ...quick, DROVER_URL: 'http://127.0.0.1:1' });
  expect([far.code, far.stderr]).toEqual([1, expect.stringContaining('127.0.0.1:1')]);
  const elsewhere = await join({ PATH: `${fakeTools({ uname: 'echo Plan9' })}:/usr/bin:/bin` });
  expect(elsewhere.stderr).toContain('there is no agent for Plan9');
  const homeless = await join({ DROVER_INSTALL_DIR: '' });
  expect(homeless.stderr).toContain('HOME is not set');
});

test('an agent that the machine cannot run is named as such', async () => {
  const lame = '#!/nonexistent/loader\n';
  put(lame, createHash('sha256').update(lame).digest('hex'));
  const { code, stderr } = await join({});
  expect([code, stderr]).toEqual([1, expect.stringContaining('needs glibc')]);
});

test('half a script does nothing', async () => {
  const { text } = await gateway.call('GET', '/install/join.sh', { token: null });
  const env = { PATH: process.env['PATH'], DROVER_INSTALL_DIR: path.join(root, 'kept') };
  for (const part of [0.5, 0.9, 0.99]) {
    spawnSync('/bin/sh', { input: text.slice(0, text.length * part), env });
    expect(existsSync(path.join(root, 'kept'))).toBe(false);
  }
});

/** Programs that are found before the system's. */
function fakeTools(tools: Record<string, string>): string {
  const folder = mkdtempSync(path.join(root, 'tools-'));
  for (const [name, body] of Object.entries(tools)) {
    writeFileSync(path.join(folder, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  }
  return folder;
}
