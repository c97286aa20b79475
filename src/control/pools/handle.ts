/** The attribute under which a worker says what its provider calls it, where only it can tell. */
export const HANDLE = 'instance';
