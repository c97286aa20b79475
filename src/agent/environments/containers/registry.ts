/** Names of images and what registries answer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Unprepared } from '../../runtimes/around.ts';

export interface Login {
  user: string;
  password: string;
}

/** `user:password`, as one secret. */
export function parseLogin(name: string, secret: string | undefined): Login {
  const at = secret?.trim().indexOf(':') ?? -1;
  if (secret === undefined || at < 1) {
    throw new Unprepared(`the secret "${name}" for the registry is not user:password`);
  }
  return { user: secret.trim().slice(0, at), password: secret.trim().slice(at + 1) };
}

/** The first part is a registry when it looks like a host; else the image is Docker Hub's. */
export function qualify(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  if (isHost) return image;
  return rest.length > 0 ? `docker.io/${image}` : `docker.io/library/${image}`;
}

export const registryOf = (image: string): string => qualify(image).split('/')[0]!;

/** Made here, or named by what it holds: there is nothing newer to fetch. */
export function isLocalName(image: string): boolean {
  return image.startsWith('localhost/') || /^(sha256:)?[0-9a-f]{64}$/.test(image);
}

export const hasDigest = (image: string): boolean => /@sha256:[0-9a-f]{64}$/.test(image);

/** For docker and podman, in a folder that is gone afterwards; never as an argument. */
export async function withAuthFile<Result>(
  folder: string,
  image: string,
  login: Login | undefined,
  use: (file: string | undefined) => Promise<Result>,
): Promise<Result> {
  if (!login) return use(undefined);
  const own = mkdtempSync(join(folder, 'login-'));
  const auth = Buffer.from(`${login.user}:${login.password}`).toString('base64');
  const registry = registryOf(image);
  // Docker's own name of its hub.
  const names = registry === 'docker.io' ? [registry, 'https://index.docker.io/v1/'] : [registry];
  const auths = Object.fromEntries(names.map((name) => [name, { auth }]));
  try {
    const file = join(own, 'config.json');
    writeFileSync(file, JSON.stringify({ auths }), { mode: 0o600 });
    return await use(file);
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}

const ABSENT =
  /manifest unknown|name unknown|not found|no such (image|file)|does not exist|invalid reference/i;
const REFUSED = /unauthori[sz]ed|authentication required|denied|forbidden|invalid username/i;

/** Only a registry that cannot be reached from here may be within reach of another machine. */
export function pullFailure(image: string, said: string, hasLogin: boolean): Unprepared {
  if (REFUSED.test(said)) {
    const hint = hasLogin
      ? 'the secret named for it was refused'
      : 'name a secret user:password with --registry-secret, if it is private';
    return new Unprepared(`the registry does not hand out the image ${image}: ${hint} (${said})`);
  }
  if (ABSENT.test(said)) return new Unprepared(`there is no image ${image}: ${said}`);
  const message = `the image ${image} could not be fetched to this machine: ${said}`;
  return new Unprepared(message, { hostFault: true });
}
