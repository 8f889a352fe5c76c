import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["browser/*.test.ts"],
    fileParallelism: false,
    // A browser takes its time beside other work.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
