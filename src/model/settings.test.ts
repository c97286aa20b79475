/** Settings from file, environment and flags, and that the example file tells all of them. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { settingsOf, variableOf } from '../lib/config.ts';
import { loadSettings, settingsSchema, VARIABLE_PREFIX, type LoadedSettings } from './settings.ts';

const EXAMPLE = 'deploy/config.example.yaml';
const home = '/users/ada';

describe('the example file', () => {
  const example = readFileSync(EXAMPLE, 'utf8');

  test('loads and equals the defaults', () => {
    expect(load({ file: example })).toEqual({ ...load({}), warnings: [] });
  });

  test('lists every setting in the order of the schema, each with a comment', () => {
    const listed: string[] = [];
    let section = '';
    let before = '';
    for (const line of example.split('\n')) {
      const [, indent, name] = /^( *)(\w+):/.exec(line) ?? [];
      if (indent === '') section = name ?? '';
      if (indent === '  ') {
        listed.push(`${section}.${name}`);
        expect(before, `a comment above ${section}.${name}`).toMatch(/^ {2}# .+/);
      }
      before = line;
    }
    expect(listed).toEqual([...settingsOf(settingsSchema).keys()]);
  });
});

describe('the environment', () => {
  test('every setting has a variable of its own', () => {
    const settings = [...settingsOf(settingsSchema).keys()];
    const variables = settings.map((setting) => variableOf(VARIABLE_PREFIX, setting));
    expect(new Set(variables).size).toBe(settings.length);
    expect(variables).toContain('DROVER_SERVER_PORT');
    expect(variables).toContain('DROVER_LEASES_ATTEMPT_MS');
    expect(variables).toContain('DROVER_STORE_URL_FILE');
  });

  test('wins over the file, and flags win over both', () => {
    const file = 'server:\n  port: 1\n  host: a\nlogs:\n  level: warn\n';
    const env = { DROVER_SERVER_PORT: '2', DROVER_SERVER_HOST: 'b' };
    const argvOverrides = { 'server.port': '3', 'data.dir': undefined };
    const { settings } = load({ file, env, argvOverrides });
    expect(settings.server).toMatchObject({ port: 3, host: 'b' });
    expect(settings.logs.level).toBe('warn');
  });

  test('gives numbers, switches, text that looks like a number, and names with values', () => {
    const { settings } = load({
      env: {
        DROVER_GRPC_ENABLED: 'false',
        DROVER_LEASES_WORKER_MS: '20000',
        DROVER_CLUSTER_NAME: '42',
        DROVER_AGENT_ATTRIBUTES: '{rack: b12}',
        DROVER_AGENT_ACCEPTS: '{tenants: [physics]}',
        DROVER_SERVER_PUBLIC_URL: '',
      },
    });
    expect(settings.grpc.enabled).toBe(false);
    expect(settings.leases.workerMs).toBe(20_000);
    expect(settings.cluster.name).toBe('42');
    expect(settings.agent.attributes).toEqual({ rack: 'b12' });
    expect(settings.agent.accepts).toEqual({ tenants: ['physics'], interruptibleOnly: false });
  });

  test('DROVER_DATA is the data folder, and the full name wins over it', () => {
    expect(load({ env: { DROVER_DATA: '/srv/a' } }).settings.data.dir).toBe('/srv/a');
    const both = { DROVER_DATA: '/srv/a', DROVER_DATA_DIR: '/srv/b' };
    expect(load({ env: both }).settings.data.dir).toBe('/srv/b');
  });

  test('a task may call drover: its own variables are no settings', () => {
    const env = {
      DROVER_JOB_ID: 'j1',
      DROVER_ARRAY_INDEX: '3',
      DROVER_URL: 'x',
      DROVER_TOKEN: 'y',
    };
    expect(load({ env }).warnings).toEqual([]);
  });
});

describe('a mistake is told with its place and the way out', () => {
  test.each<[string, Partial<Sources>, string]>([
    [
      'a mistyped key',
      { file: 'server:\n  host: a\n  prot: 1\n' },
      'server.prot (config.yaml:3): there is no such setting; did you mean server.port?',
    ],
    [
      'a mistyped section',
      { file: '# mine\nsever:\n  port: 1\n' },
      'sever (config.yaml:2): there is no such section; did you mean server?',
    ],
    [
      'a mistyped variable',
      { env: { DROVER_SERVER_PROT: '1' } },
      'DROVER_SERVER_PROT: there is no such setting; did you mean DROVER_SERVER_PORT?',
    ],
    [
      'a wrong type in the file',
      { file: '\nserver:\n  port: many\n' },
      'server.port (config.yaml:3): expected a whole number from 0 to 65535, not "many"',
    ],
    [
      'a wrong type in a variable',
      { env: { DROVER_GRPC_ENABLED: 'perhaps' } },
      'grpc.enabled (DROVER_GRPC_ENABLED): expected true or false, not "perhaps"',
    ],
    [
      'a value out of range on the command line',
      { argvOverrides: { 'server.port': '70000' } },
      'server.port (the command line): expected a whole number from 0 to 65535, not 70000',
    ],
    [
      'a word that is none of the choices',
      { env: { DROVER_STORE_KIND: 'mysql' } },
      'store.kind (DROVER_STORE_KIND): expected one of sqlite, postgres, not "mysql"',
    ],
    [
      'a value of names',
      { file: 'agent:\n  attributes: [a]\n' },
      'agent.attributes (config.yaml:2): expected names with values, as {name: value}, not ["a"]',
    ],
    [
      'leases that contradict each other',
      { env: { DROVER_LEASES_LONG_POLL_MS: '60000' } },
      'leases.longPollMs (DROVER_LEASES_LONG_POLL_MS): must be below leases.workerMs (30000)',
    ],
    [
      'a key twice',
      { file: 'grpc:\n  port: 1\n  port: 2\n' },
      'config.yaml:3: Map keys must be unique',
    ],
    ['no sections', { file: 'hello' }, 'config.yaml: expected sections with settings'],
    ['a plain section', { file: 'server: 1' }, 'server (config.yaml:1): is a section'],
    [
      'PostgreSQL without an address',
      { env: { DROVER_STORE_KIND: 'postgres' } },
      'store.url: PostgreSQL needs one of store.url',
    ],
    [
      'a password in the file',
      { file: 'store:\n  kind: postgres\n  url: postgres://a:b@h/d\n' },
      'store.url (config.yaml:3): holds a password; give it as DROVER_STORE_URL',
    ],
  ])('%s', (_, sources, message) => {
    expect(() => load(sources)).toThrow(message);
  });

  test('all mistakes are told at once', () => {
    const env = { DROVER_SERVER_PORT: 'x', DROVER_GRPC_PORT: 'y' };
    expect(() => load({ env })).toThrow(/server\.port.*\n.*grpc\.port/);
  });

  test('a variable outside every section only warns', () => {
    const { warnings } = load({ env: { DROVER_SERVR_PORT: '1' } });
    expect(warnings).toEqual([
      'DROVER_SERVR_PORT: there is no such setting; did you mean DROVER_SERVER_PORT?',
    ]);
  });
});

describe('files', () => {
  test('none is needed, and a named one that is absent warns', () => {
    expect(load({}).warnings).toEqual([]);
    const { warnings } = load({ env: { DROVER_CONFIG: '/etc/drover.yaml' } });
    expect(warnings).toEqual([expect.stringContaining('/etc/drover.yaml, which does not exist')]);
  });

  test('one that cannot be read is an error', () => {
    const readFile = (): string => {
      throw Object.assign(new Error('no'), { code: 'EACCES' });
    };
    expect(() => loadSettings({ env: { HOME: home }, readFile })).toThrow('cannot be read');
  });

  test('paths below the home folder are resolved, and the agent lives in the data folder', () => {
    const { settings } = load({});
    expect(settings.data.dir).toBe('/users/ada/.drover');
    expect(settings.agent.dataDir).toBe('/users/ada/.drover/agent');
    expect(() => loadSettings({ env: {}, readFile: absent })).toThrow('HOME is not set');
  });

  test('the URL of the database may lie in a file of its own', () => {
    const env = {
      HOME: home,
      DROVER_STORE_KIND: 'postgres',
      DROVER_STORE_URL_FILE: '/run/secrets/store',
    };
    const readFile = (path: string): string =>
      path === '/run/secrets/store' ? 'postgres://a:b@h/d\n' : absent();
    expect(loadSettings({ env, readFile }).settings.store.url).toBe('postgres://a:b@h/d');
  });
});

interface Sources {
  file: string;
  env: Record<string, string>;
  argvOverrides: Record<string, unknown>;
}

function load({ file, env, argvOverrides }: Partial<Sources>): LoadedSettings {
  return loadSettings({
    env: { HOME: home, ...(file === undefined ? {} : { DROVER_CONFIG: 'config.yaml' }), ...env },
    ...(argvOverrides ? { argvOverrides } : {}),
    readFile: (path) => (path === 'config.yaml' && file !== undefined ? file : absent()),
  });
}

function absent(): never {
  throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
}
