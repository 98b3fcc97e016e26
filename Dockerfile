# One image for every process of the service: api (the default), worker, migrate, admin, and run, which is all in one.
# The Node.js version is the one that the tests run on (devDependencies.node in package.json).
FROM node:24.21.0-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No package needs its install script here: what is native comes ready-made.
RUN npm ci --omit=dev --ignore-scripts
COPY src ./src
COPY bin ./bin
COPY deploy/image/prune.js /tmp/
# Workflow code is bundled and types are removed now, because the image is read-only when it runs; then what only that
# took goes, and native code of other systems.
RUN node bin/stripped-types.js && node src/main.ts bundle-workflows && node /tmp/prune.js

# The documentation at /docs. It is the same for every system, so it is built on the one that builds.
FROM --platform=$BUILDPLATFORM node:24.21.0-slim AS site
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md CODE_OF_CONDUCT.md ./
COPY clients/typescript/README.md ./clients/typescript/README.md
COPY clients/python/README.md ./clients/python/README.md
COPY clients/go/README.md ./clients/go/README.md
COPY docs ./docs
COPY scripts ./scripts
COPY site ./site
COPY src ./src
COPY dev/embedded/exclusive-lock.ts dev/embedded/kept-files.ts dev/embedded/process-identity.ts ./dev/embedded/
COPY test/support/openapi-document.ts test/support/silent-logger.ts ./test/support/
RUN node scripts/docs-site.ts

FROM node:24.21.0-slim
ENV NODE_ENV=production MALLOC_ARENA_MAX=1
# Nothing is installed in a container.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn* /opt/yarn*
WORKDIR /app
COPY --from=build /app ./
COPY --from=site /app/site/dist ./site/dist
# An existing account without privileges; it owns nothing in /app.
USER node
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + ([process.env.HELIOGRAPH_API_PORT, process.env.PORT].find((port) => /^[0-9]+$/.test(port)) || 8080) + '/readyz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--heap-growing-percent=80", "--max-semi-space-size=8", "--import", "./bin/stripped-types.js", "src/main.ts", "api"]
