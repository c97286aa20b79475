/** Every planted bug. */
import { AGENTS_PLANTS } from './agents.ts';
import { DURABILITY_PLANTS } from './durability.ts';
import { PLACEMENT_PLANTS } from './placement.ts';
import type { Plant } from './plant.ts';

export const PLANTS: readonly Plant[] = [
  ...DURABILITY_PLANTS,
  ...AGENTS_PLANTS,
  ...PLACEMENT_PLANTS,
];
