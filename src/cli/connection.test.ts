/** Where the server is found, logging in, servers that are not there, and help. */
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findConnection } from './connection.ts';
import { saveContext } from './contexts.ts';
import { capture } from './captured.ts';
import { FAKE_TOKEN, startFakeServer, type FakeServer } from './fakeServer.ts';

let fake: FakeServer;
let home: string;
beforeEach(async () => {
  fake = await startFakeServer();
  home = mkdtempSync(path.join(tmpdir(), 'drover-home-'));
});
afterEach(async () => {
  await fake.close();
  rmSync(home, { recursive: true });
});

function writeUp(folder: string, content: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'connection.json'), content);
}

describe('where the server is', () => {
  test('drover up, then login, then the environment, then --url', () => {
    const env: Record<string, string> = { HOME: home };
    expect(() => findConnection(env)).toThrow('no server is known here');
    writeUp(path.join(home, '.drover'), '{"url": "http://up:1", "token": "u"}');
    expect(findConnection(env)).toMatchObject({ url: 'http://up:1', token: 'u' });
    const data = path.join(home, 'data');
    writeUp(data, '{"url": "http://data:1/", "token": "d"}');
    env['DROVER_DATA'] = data;
    expect(findConnection(env)).toMatchObject({ url: 'http://data:1', token: 'd' });
    saveContext(env, { url: 'http://one:1', token: 'o' });
    saveContext(env, { url: 'http://two:1', token: 't', name: 'second' });
    expect(findConnection(env)).toMatchObject({ url: 'http://two:1', token: 't' });
    env['DROVER_CONTEXT'] = 'one:1';
    expect(findConnection(env)).toMatchObject({ url: 'http://one:1', token: 'o' });
    env['DROVER_CONTEXT'] = 'tow:1';
    expect(() => findConnection(env)).toThrow('there is no context "tow:1"');
    delete env['DROVER_CONTEXT'];
    env['DROVER_URL'] = 'http://one:1/';
    expect(findConnection(env)).toMatchObject({ url: 'http://one:1', token: 'o' });
    expect(findConnection(env, { url: 'other:7' })).toMatchObject({ url: 'http://other:7' });
    expect(findConnection(env, { url: 'other:7' }).token).toBeUndefined();
    env['DROVER_TOKEN'] = 'e';
    expect(findConnection(env, { url: 'other:7' }).token).toBe('e');
  });

  test.each(['', '{', '[]', '{"url": 3}', '{"url": "ftp://x", "token": "t"}'])(
    'a damaged file %j is named',
    async (content) => {
      writeUp(path.join(home, '.drover'), content);
      const result = await capture(['jobs'], { env: { HOME: home } });
      expect(result.code).toBe(2);
      expect(result.stderr).toContain('connection.json');
    },
  );

  test.each(['ftp://x', 'http://', 'http://user:pw@x', 'http://x/?q=1', '::'])(
    '%s is no address',
    async (url) => {
      const result = await capture(['jobs', `--url=${url}`]);
      expect(result.code).toBe(2);
      expect(result.stderr).toContain('write http://HOST:PORT');
    },
  );
});

describe('login', () => {
  test('keeps a checked token for its owner only', async () => {
    const env = { HOME: home };
    const login = await capture(['login', fake.url], { env, stdin: `${FAKE_TOKEN}\n` });
    expect(login).toMatchObject({ code: 0, stdout: `logged in to lab at ${fake.url}\n` });
    const file = path.join(home, '.config', 'drover', 'context.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await capture(['jobs', '--json'], { env })).stdout).toBe('[]\n');
  });

  test('several servers by name: listed without tokens, chosen, forgotten', async () => {
    const env = { HOME: home };
    const login = (args: string[]) =>
      capture(['login', fake.url, ...args], { env, stdin: FAKE_TOKEN });
    saveContext(env, { url: 'http://other:1', token: 'secret', name: 'other' });
    expect((await login(['--name', 'lab'])).code).toBe(0);
    expect((await login([])).code).toBe(0);
    const ls = await capture(['context'], { env });
    expect(ls.stdout).toBe(`   NAME   URL\n*  lab    ${fake.url}\n   other  http://other:1\n`);
    expect((await capture(['context', 'use', 'other'], { env })).stdout).toContain(
      'http://other:1',
    );
    const json = await capture(['context', 'ls', '--json'], { env });
    expect(JSON.parse(json.stdout)).toEqual([
      { name: 'other', url: 'http://other:1', current: true },
      { name: 'lab', url: fake.url, current: false },
    ]);
    expect((await capture(['jobs'], { env: { ...env, DROVER_CONTEXT: 'lab' } })).code).toBe(0);
    expect((await login(['--name', 'other'])).stderr).toContain('"other" is the name of http://o');
    expect((await login(['--name', 'a b'])).code).toBe(2);
    expect((await capture(['context', 'rm', 'other'], { env })).code).toBe(0);
    expect(findConnection(env).url).toBe(fake.url);
    for (const args of [['use', 'othr'], ['rm'], ['swap'], ['use', 'lab', 'x']]) {
      expect((await capture(['context', ...args], { env })).code).toBe(2);
    }
    const file = path.join(home, '.config', 'drover', 'context.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('a wrong token is not kept', async () => {
    const env = { HOME: home };
    const login = await capture(['login', fake.url], { env, stdin: 'wrong' });
    expect(login.code).toBe(1);
    expect(login.stderr).toMatch(/^error UNAUTHENTICATED: .*\ntry: `drover login URL`/);
    expect(() => findConnection(env)).toThrow('no server');
    expect((await capture(['login', fake.url], { env, stdin: '' })).code).toBe(2);
    expect((await capture(['login', fake.url], { env, stdin: 'a b' })).code).toBe(2);
  });
});

describe('a server that is not there or not ours', () => {
  test('refused: at once, with the URL and how to start one', async () => {
    const { url } = fake;
    await fake.close();
    const startedMs = performance.now();
    const result = await capture(['jobs'], { url });
    expect(performance.now() - startedMs).toBeLessThan(2000);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(`error CONNECTION_REFUSED: no connection to ${url}`);
    expect(result.stderr).toContain('make up');
    fake = await startFakeServer();
  });

  test('401 says how to log in, and --json says it as JSON', async () => {
    const env = { DROVER_TOKEN: 'old' };
    const result = await capture(['jobs'], { url: fake.url, env });
    expect(result.stderr).toContain('try: `drover login URL`');
    const json = await capture(['jobs', '--json'], { url: fake.url, env });
    expect(json.stdout).toBe('');
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: 'UNAUTHENTICATED' } });
  });

  test.each([
    [200, '<html>hello</html>'],
    [404, '<html>not here</html>'],
    [200, '[]'],
    [200, ''],
  ])('an answer that is not ours: %i %j', async (status, body) => {
    fake.intercept = (_, response) => {
      response.writeHead(status).end(body);
      return true;
    };
    const result = await capture(['jobs'], { url: fake.url });
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('error UNEXPECTED_RESPONSE');
  });

  test('a server that is starting is waited for', async () => {
    let refusals = 0;
    fake.intercept = (_, response) => {
      if (refusals++ > 1) return false;
      response.writeHead(503).end('{"code": "UNAVAILABLE", "detail": "starting"}');
      return true;
    };
    expect(await capture(['jobs', '--json'], { url: fake.url })).toMatchObject({ code: 0 });
  });
});

describe('help', () => {
  test('every command explains itself', async () => {
    const all = await capture(['help', '--json']);
    for (const { name, usage } of JSON.parse(all.stdout) as { name: string; usage: string[] }[]) {
      const help = await capture(name === 'help' ? ['help'] : [name, '--help']);
      expect(help).toMatchObject({ code: 0, stderr: '' });
      if (name !== 'help') expect(help.stdout).toContain(`usage: drover ${usage[0]}`);
    }
    expect((await capture([])).stdout).toContain('drover COMMAND --help');
    expect((await capture(['help', 'run'])).stdout).toContain('--gpus');
  });

  test('the help of a command after -- is the command’s own', async () => {
    const result = await capture(['run', '-d', '--', 'python3', '--help'], { url: fake.url });
    expect(result.stdout).toBe('j1\n');
  });

  test.each([
    ['jbos', 'drover jobs'],
    ['worker', 'drover workers'],
    ['contoller', 'drover controller'],
    ['qqqqqq', 'drover help'],
  ])('unknown command %s', async (typed, expected) => {
    const result = await capture([typed]);
    expect(result.code).toBe(2);
    expect(result.stderr).toBe(
      `error USAGE: there is no command ${JSON.stringify(typed)}\ntry: ${expected}\n`,
    );
  });

  test('version', async () => {
    expect((await capture(['--version'])).stdout).toMatch(/^drover \d+\.\d+\.\d+\n$/);
    expect(JSON.parse((await capture(['version', '--json'])).stdout)).toHaveProperty('version');
  });
});
