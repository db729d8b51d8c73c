"""One short round, an upgrade: every Deployment with one pod, told to stop sooner than on a cluster. `make soak` runs
it; `make rolling` has as many pods as the manifests say.
"""

from collections.abc import Iterator

import pytest

from kit.base.services import SERVICES
from kit.db import migrate, schema
from tests.k8s.manifests import DEPLOYMENTS, container, name
from tests.rolling.cluster import Cluster
from tests.rolling.pods import Pace
from tests.rolling.rounds import Figures, run_round

pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]

SEED = 7
PER_SECOND = 50  # two cores are busy with the starts; `make rolling` asks 200


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Figures]:
    folder = tmp_path_factory.mktemp("rolling")
    with Cluster(folder, pace=Pace(names_kept_seconds=0.2, leaving_seconds=3), of_each=1) as cluster:
        yield run_round(cluster, seed=SEED, per_second=PER_SECOND, at_once=2)


def test_every_process_can_be_replaced_under_load_and_no_request_is_lost_or_done_twice(
    figures: Figures,
) -> None:
    assert figures.violations == []
    assert figures.restarts == len(DEPLOYMENTS)


def test_pods_served_before_their_migration_and_on_after_it(figures: Figures) -> None:
    has_migration = any(schema.needs(each) != migrate.head(each) for each in SERVICES)
    assert (figures.early > 0) == has_migration


def test_there_was_a_load_and_hardly_a_request_had_to_be_tried_again(figures: Figures) -> None:
    assert figures.load.requests > 5 * PER_SECOND
    assert figures.created > 0
    assert figures.webhooks >= figures.created
    assert figures.retried <= figures.load.requests / 100, figures.load.retried


def test_a_pod_asks_for_the_memory_that_it_uses(figures: Figures) -> None:
    """In the manifests; a node that is given more pods than it has memory for kills some."""
    asked = {
        name(each): int(container(each)["resources"]["requests"]["memory"].removesuffix("Mi"))
        for each in DEPLOYMENTS
    }
    used = {each: memory for each, (_, memory) in figures.used.items()}
    assert used.keys() == asked.keys()
    assert not {each: memory for each, memory in used.items() if memory > asked[each]}
