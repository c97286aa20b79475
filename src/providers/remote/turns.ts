/** First come, first served; at most so many at once. */

export interface Turns {
  run<Result>(work: () => Promise<Result>): Promise<Result>;
}

export function createTurns(most: number): Turns {
  let taken = 0;
  const waiting: (() => void)[] = [];
  const release = (): void => {
    const next = waiting.shift();
    if (next) next();
    else taken--;
  };
  return {
    async run(work) {
      if (taken < most) taken++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
