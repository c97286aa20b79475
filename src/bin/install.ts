/** Where the gateway looks for the self-contained agent. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InstallOptions } from '../gateway/install/routes.ts';
import { GATEWAY_LIMITS } from '../gateway/limits.ts';
import type { Settings } from '../model/settings.ts';

const CHECKOUT_DIST = fileURLToPath(new URL('../../dist', import.meta.url));

export function installOptions({ server, data }: Settings): InstallOptions {
  const folders = server.installFolder
    ? [server.installFolder]
    : [join(data.dir, 'install'), CHECKOUT_DIST];
  return { folders, publicUrl: server.publicUrl, limits: GATEWAY_LIMITS };
}
