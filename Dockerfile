# autotailor with all its libraries, at the versions of requirements.lock:
#
#   docker build --tag autotailor .                               networks are trained and evaluated on the processor
#   docker build --tag autotailor --build-arg TORCH=cu130 .       on NVIDIA GPUs
#   docker run --rm --volume "$PWD":/project autotailor run       in the project folder on this computer
#
# docs/guides/install.md says more.
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
# What PyTorch is built for: cpu, or a version of CUDA, as `uv pip install --torch-backend` takes it. Empty: the build that
# the package index has.
ARG TORCH=cpu
ENV UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /source
RUN python -m venv /opt/autotailor \
    && python -m pip install --no-cache-dir "uv>=0.7"
COPY requirements.lock pyproject.toml ./
# The lock is that of PyTorch's usual build. What only its CUDA needs is left to the build that is chosen here.
RUN grep -vE '^(cuda-|nvidia-|triton)' requirements.lock > constraints.txt \
    && uv pip install --python /opt/autotailor/bin/python --constraint constraints.txt \
    ${TORCH:+--torch-backend "${TORCH}"} --requirement pyproject.toml \
    --extra huggingface --extra postgresql --extra slurm --extra webdataset
COPY setup.py README.md LICENSE ./
COPY conf ./conf
COPY workflow ./workflow
COPY src ./src
RUN uv pip install --python /opt/autotailor/bin/python --no-deps .

FROM python:${PYTHON}-slim
# Threads of PyTorch and ncnn, phones on USB, and the commit of the project that a run records. Versions are Debian's.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git libgomp1 libusb-1.0-0 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 tailor \
    && install --directory --owner tailor --mode 0777 /project /home/tailor/.cache \
    && chmod 0777 /home/tailor
COPY --from=build /opt/autotailor /opt/autotailor
# Caches have a place whichever user the container runs as.
ENV PATH=/opt/autotailor/bin:$PATH HOME=/home/tailor USER=tailor
USER 1000
WORKDIR /project
ENTRYPOINT ["autotailor"]
CMD ["--help"]
