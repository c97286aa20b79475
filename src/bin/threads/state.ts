/** The state thread: first what runs beside it, then itself, so that both load at once. */
const { died } = await import('./stateThreads.ts');
await import('./stateParts.ts').catch((error: unknown) => died('state', error));
