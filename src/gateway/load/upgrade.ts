/** The brake on guessing for WebSockets, which pass no guard of a route. */
import { DroverError } from '../../lib/errors.ts';
import { bearerToken, type UpgradeRoute } from '../tunnel/upgrades.ts';
import type { Load } from './load.ts';

export function limitUpgrade(route: UpgradeRoute, load: Load): UpgradeRoute {
  return {
    ...route,
    match: (path) => route.match(path),
    async upgrade(upgrade, parameters) {
      const { request } = upgrade;
      const bearer = request.headers.authorization ? bearerToken(request) : '';
      load.checkAddress(request, load.wasGood(bearer));
      try {
        await route.upgrade(upgrade, parameters);
      } catch (error) {
        const isGuess = error instanceof DroverError && error.code === 'UNAUTHENTICATED';
        if (isGuess) load.noteFailure(request, performance.now());
        throw error;
      }
      if (bearer !== '') load.noteGood(bearer);
    },
  };
}
