import { defineConfig } from "vite";

// The daemon serves the output; tools/inspector.sh compares it with the committed files.
export default defineConfig({
  base: "/",
  build: {
    outDir: process.env["INSPECTOR_DIST"] ?? "../cmd/contextd/internal/inspect/dist",
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
});
