import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["browser/*.test.ts"],
    fileParallelism: false,
    // A browser is slow on a busy machine.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
