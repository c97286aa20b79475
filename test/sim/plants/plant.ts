/**
 * A planted bug: text patches on production code that the simulator must find. It names what is
 * wrong with it and which invariants may show it; anything else (a crash by a bad patch) does not
 * count.
 */

import type { StoryName } from '../run.ts';

export interface Patch {
  /** Relative to the repository. */
  file: string;
  /** Must occur exactly once in the file. */
  find: string;
  replace: string;
}

export interface Plant {
  name: string;
  what: string;
  /** In which it can be seen; left out: the usual one. */
  story?: StoryName;
  shownBy: readonly string[];
  patches: Patch[];
}
