# Ceiling Scout in an image, built from this tree; the folder with the models is mounted at /work.
#   docker build -t ceiling-scout .
#   docker run --rm -v "$PWD:/work" ceiling-scout profile model.onnx --batch 8
# With the CUDA device, from the toolkit's image:
#   docker build -t ceiling-scout --build-arg BASE=nvidia/cuda:13.0.1-cudnn-devel-ubuntu24.04 .
#   docker run --rm --gpus all -v "$PWD:/work" ceiling-scout profile model.onnx --batch 8
# tests/cli/test_setup.sh reads these lines, and scripts/fresh_root.sh runs them in a fresh Debian.
ARG BASE=debian:12.11-slim
FROM ${BASE}
WORKDIR /src/ceiling-scout
COPY . .
RUN scripts/setup.sh --build-only
RUN make
RUN make install
RUN ceiling-scout doctor
WORKDIR /work
ENTRYPOINT ["ceiling-scout"]
CMD ["--help"]
