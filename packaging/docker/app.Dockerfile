# An example: the image of a Node app that runs behind Hostler. Copy it into the folder of your app as Dockerfile, beside hostler.toml.
# In hostler.toml, listen must be ":8080": nothing outside of the container reaches its 127.0.0.1.
ARG HOSTLER=hostler:0.1.0
FROM ${HOSTLER} AS hostler

FROM node:22-slim
COPY --from=hostler /usr/local/bin/hostler /usr/local/bin/hostler
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev
COPY . .
ENV NODE_ENV=production
# The user `node` of the image.
USER 1000:1000
EXPOSE 8080
# Hostler is the first process of the container: it gets SIGTERM, and finishes the accepted requests.
CMD ["hostler", "start", "--config", "hostler.toml"]
