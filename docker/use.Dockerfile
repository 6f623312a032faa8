# A use in four lines: the actor's image, the tool that its sidecar fetches knowledge with, the sidecar, its cards.
# For an image of your own build, write its name in the first. What sessions build and test with (PHP, a compiler, …) is
# installed here too, between USER root and USER 10001.
FROM ghcr.io/acme-lab/foundry-implementation-actor:0.8.0
COPY --from=ghcr.io/acme-lab/knowledge:1.4.0 /usr/local/bin/knowledge /usr/local/bin/knowledge
COPY --chown=10001:10001 actor-agentic-context.yaml /actor/
RUN foundry-implementation-actor lint /actor && foundry-implementation-actor render-cards /actor
