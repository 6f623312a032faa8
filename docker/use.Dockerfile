# A use in five lines: the actor's image (an argument, so that a site can name its own), the tool that its sidecar fetches
# knowledge with, the sidecar, its cards.
# What its sessions build and test with (PHP, a compiler, …) is installed here too, between USER root and USER 10001.
ARG ACTOR_IMAGE=ghcr.io/acme-lab/foundry-implementation-actor:0.8.0
FROM ${ACTOR_IMAGE}
COPY --from=ghcr.io/acme-lab/knowledge:1.4.0 /usr/local/bin/knowledge /usr/local/bin/knowledge
COPY --chown=10001:10001 actor-agentic-context.yaml /actor/
RUN foundry-implementation-actor lint /actor && foundry-implementation-actor render-cards /actor
