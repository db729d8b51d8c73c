# One image, many commands: `python -m services.invoices serve`, `python -m gateway run`, `fiatgate status` ...
# docker build -t fiatgate:1.0.0 .

FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d AS base
ENV PATH=/opt/fiatgate/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# Every dependency is a wheel checked by its hash: nothing is compiled, here or later. What nobody reads at run time is
# removed. Python's own bytecode is made in the end, without the times of files, so that two builds have the same bytes.
FROM base AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
RUN apt-get update -qq && apt-get install -qq --no-install-recommends binutils >/dev/null
RUN python -m venv /opt/fiatgate
COPY requirements.lock /src/
RUN pip install --quiet --no-compile --require-hashes --no-deps --only-binary :all: --requirement /src/requirements.lock
COPY . /src
RUN pip install --quiet --no-compile --no-deps --no-build-isolation /src \
    && pip uninstall --quiet --yes setuptools pip \
    && python /src/tools/slim.py /opt/fiatgate \
    && python -m compileall -q --invalidation-mode unchecked-hash /opt/fiatgate/lib

FROM base
COPY --from=build /opt/fiatgate /opt/fiatgate
WORKDIR /opt/fiatgate
USER 10001:10001
CMD ["fiatgate", "--help"]
