/** Images, fetched to this machine before a command starts. */
import { createReadStream, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { isAbsolute, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../../../lib/clock.ts';
import { Unprepared } from '../../runtimes/around.ts';
import { keyOf, type EnvironmentStore } from '../store.ts';
import { runTool, sayNowAndThen, withoutSecrets, type ToolEnd } from '../tool.ts';
import { ENROOT_ROOT } from './enroot.ts';
import type { ContainerHost } from './host.ts';
import {
  hasDigest,
  isLocalName,
  pullFailure,
  qualify,
  registryOf,
  withAuthFile,
  type Login,
} from './registry.ts';

/**
 * Apptainer and enroot make a file of an image. One that is named by a tag is made anew after this
 * long, for the tag may have moved.
 */
const FILE_FRESH_MS = 3_600_000;
/** What such a file hashes to, written down once. */
const DIGEST = 'digest';

export interface ImageCall {
  host: ContainerHost;
  store: EnvironmentStore;
  /** For files that are gone at the next start of the agent at the latest. */
  temporary: string;
  clock: Clock;
  /** What the runtime is called with. */
  env: Record<string, string>;
  image: string;
  login: Login | undefined;
  uid: string;
  signal: AbortSignal;
  say: (progress: string) => void;
}

export interface FoundImage {
  /** What the runtime starts. */
  start: string;
  digest: string;
}

export function provideImage(call: ImageCall): Promise<FoundImage> {
  const { runtime } = call.host;
  if (runtime === 'podman' || runtime === 'docker') return pull(call);
  return runtime === 'apptainer' ? makeSif(call) : makeRoot(call);
}

async function call(
  { host, clock, env, signal, say, image, login }: ImageCall,
  args: string[],
  more: Record<string, string> = {},
): Promise<ToolEnd> {
  const tell = sayNowAndThen(clock, (line) => say(withoutSecrets(line, secretsOf(login))));
  const onLine = (line: string): void => tell(`fetching the image ${image}: ${line}`);
  const options = { program: host.program, env: { ...env, ...more }, clock, signal, onLine };
  return runTool({ ...options, args });
}

const secretsOf = (login: Login | undefined): Record<string, string> =>
  login ? { password: login.password } : {};

function failed({ image, login }: ImageCall, { lastLines }: ToolEnd): Unprepared {
  const said = withoutSecrets(lastLines.slice(-3).join(' '), secretsOf(login));
  return pullFailure(image, said || 'the tool gave no reason', login !== undefined);
}

/** The registry is asked each time, since tags move; what is here already is not sent again. */
async function pull(one: ImageCall): Promise<FoundImage> {
  const { host, image, login, temporary, say } = one;
  const isSettled = isLocalName(image) || hasDigest(image);
  const here = isSettled ? await inspect(one) : undefined;
  if (here) return here;
  if (isLocalName(image)) throw new Unprepared(`there is no image ${image} on this machine`);
  say(`fetching the image ${image}`);
  const end = await withAuthFile(temporary, image, login, (file) => {
    if (host.runtime === 'docker') {
      const config = file === undefined ? {} : { DOCKER_CONFIG: join(file, '..') };
      return call(one, ['pull', qualify(image)], config);
    }
    const auth = file === undefined ? [] : ['--authfile', file];
    return call(one, ['pull', ...auth, qualify(image)]);
  });
  if (end.code === 0) {
    const found = await inspect({ ...one, image: qualify(image) });
    if (found) return found;
  }
  const old = await inspect(one);
  if (!old) throw failed(one, end);
  say(`the image ${image} could not be asked for; the one that is here is taken`);
  return old;
}

interface Inspected {
  Id?: string;
  Digest?: string;
  RepoDigests?: string[];
}

async function inspect(one: ImageCall): Promise<FoundImage | undefined> {
  const silent = { ...one, say: (): void => undefined };
  const { code, stdout } = await call(silent, ['image', 'inspect', one.image]);
  if (code !== 0) return undefined;
  const [found] = JSON.parse(stdout) as Inspected[];
  if (!found?.Id) return undefined;
  const id = found.Id.startsWith('sha256:') ? found.Id : `sha256:${found.Id}`;
  const named = found.RepoDigests?.[0]?.split('@')[1];
  return { start: id, digest: found.Digest ?? named ?? id };
}

/** By its name and the hour, unless the name says what it holds. */
function fileKey({ host, image, clock }: ImageCall): string {
  const hour = hasDigest(image) ? '' : String(Math.floor(clock.now() / FILE_FRESH_MS));
  return keyOf(['image', host.runtime, image, hour]);
}

async function makeSif(one: ImageCall): Promise<FoundImage> {
  const { image, login, uid, store, say, signal } = one;
  if (isAbsolute(image)) {
    const stat = statSync(image, { throwIfNoEntry: false });
    if (!stat) {
      throw new Unprepared(`there is no image ${image} on this machine`, { hostFault: true });
    }
    return { start: image, digest: '' };
  }
  const from = image.includes('://') ? image : `docker://${qualify(image)}`;
  const env: Record<string, string> = {};
  for (const name of login ? ['APPTAINER', 'SINGULARITY'] : []) {
    env[`${name}_DOCKER_USERNAME`] = login!.user;
    env[`${name}_DOCKER_PASSWORD`] = login!.password;
  }
  say(`fetching the image ${image}`);
  const folder = await store.use(fileKey(one), { uid, say }, async (own) => {
    const file = join(own, 'image.sif');
    const end = await call(one, ['pull', file, from], env);
    if (end.code !== 0) throw failed(one, end);
    writeFileSync(join(own, DIGEST), await hashOf(file, signal));
  });
  return { start: join(folder, 'image.sif'), digest: readFileSync(join(folder, DIGEST), 'utf8') };
}

/** Enroot reads logins from a file of its settings folder, in the form of a .netrc. */
async function makeRoot(one: ImageCall): Promise<FoundImage> {
  const { image, login, uid, store, say, signal } = one;
  const registry = registryOf(image);
  const host = registry === 'docker.io' ? 'registry-1.docker.io' : registry;
  const path = qualify(image).slice(registry.length + 1);
  const user = login ? `${encodeURIComponent(login.user)}@` : '';
  const machine = registry === 'docker.io' ? 'auth.docker.io' : registry;
  say(`fetching the image ${image}`);
  const folder = await store.use(fileKey(one), { uid, say }, async (own) => {
    const file = join(own, 'image.sqsh');
    const credentials = join(own, '.credentials');
    const env = { ENROOT_DATA_PATH: own, ...(login && { ENROOT_CONFIG_PATH: own }) };
    try {
      if (login) {
        const line = `machine ${machine} login ${login.user} password ${login.password}\n`;
        writeFileSync(credentials, line, { mode: 0o600 });
      }
      const from = `docker://${user}${host}#${path}`;
      const end = await call(one, ['import', '-o', file, from], env);
      if (end.code !== 0) throw failed(one, end);
    } finally {
      rmSync(credentials, { force: true });
    }
    const made = await call(one, ['create', '--name', ENROOT_ROOT, file], env);
    if (made.code !== 0) throw failed(one, made);
    writeFileSync(join(own, DIGEST), await hashOf(file, signal));
    // The root is all that is needed from here on.
    rmSync(file, { force: true });
  });
  return { start: join(folder, ENROOT_ROOT), digest: readFileSync(join(folder, DIGEST), 'utf8') };
}

async function hashOf(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash, { signal });
  return `sha256:${hash.digest('hex')}`;
}
