"""The manifests as kustomize and Helm render them: valid, whole, true to the proxy's settings."""

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from leader_hints.address import Address
from leader_hints.cli.sources import load_settings
from leader_hints.cli.templates import expand
from leader_hints.settings.route import RouteSettings
from tests.deploy.rendered import (
    Rendered,
    brokers_chart,
    daemonset_chart,
    kustomized,
    validate,
)
from tests.deploy.tools import need
from tests.harness.maven import ROOT

FIELDS = {"status.hostIP": "10.0.0.7", "metadata.name": "kafka-0"}
_POLICY = ("networkPolicy.enabled=true",)
_RENDERINGS: Mapping[str, Callable[[Path], Rendered]] = {
    "kustomize-sidecar": lambda folder: kustomized("example"),
    "kustomize-daemonset": lambda folder: kustomized("daemonset"),
    "helm-daemonset": lambda folder: daemonset_chart(),
    "helm-scraped-daemonset": lambda folder: daemonset_chart("admin=${NODE_IP}:9100"),
    "helm-localhost-daemonset": lambda folder: daemonset_chart("admin=localhost:9100"),
    "helm-ipv6-daemonset": lambda folder: daemonset_chart("admin=[::1]:9100"),
    "helm-sidecar": lambda folder: brokers_chart(folder, *_POLICY),
    "helm-plain-sidecar": lambda folder: brokers_chart(folder, "sidecar.native=false", *_POLICY),
}


@pytest.fixture(scope="module", params=_RENDERINGS)
def rendered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """Each of them."""
    need("kustomize", "helm", "kubernetes-validate")
    return _RENDERINGS[request.param](tmp_path_factory.mktemp("charts") / "charts")


def within(part: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    """Whether every label that is asked for is there."""
    return bool(part) and part.items() <= whole.items()


def test_it_is_valid_to_the_last_field(rendered: Rendered, tmp_path: Path) -> None:
    validate(rendered, tmp_path)


def test_validation_sees_a_field_that_is_none(tmp_path: Path) -> None:
    need("kustomize", "kubernetes-validate")
    text = kustomized("daemonset").text
    wrong = Rendered(text.replace("readOnlyRootFilesystem", "readonlyRootFilesystem"))
    with pytest.raises(AssertionError, match="readonlyRootFilesystem"):
        validate(wrong, tmp_path)


def test_selectors_find_the_pods(rendered: Rendered) -> None:
    labels = rendered.pod["metadata"]["labels"]
    assert within(rendered.workload["spec"]["selector"]["matchLabels"], labels)
    for policy in rendered.of("NetworkPolicy"):
        assert within(policy["spec"]["podSelector"]["matchLabels"], labels)
    for service in rendered.of("Service"):
        assert within(service["spec"]["selector"], labels)
        assert service["metadata"]["name"] == rendered.workload["spec"]["serviceName"]


def test_its_settings_are_taken_and_its_ports_are_those(rendered: Rendered, tmp_path: Path) -> None:
    environment = rendered.environment(FIELDS)
    ((place, folder),) = rendered.mount(tmp_path).items()
    file = folder / Path(environment.pop("LEADER_HINTS_CONFIG")).relative_to(place)

    settings = load_settings({}, environment, file)

    ports = {one["name"]: one["containerPort"] for one in rendered.proxy["ports"]}
    assert settings.admin is not None
    assert ports.pop("hints-admin") == settings.admin.port
    assert list(ports.values()) == [route.listen.port for route in settings.routes]
    assert settings.hints == "observe", "first look, then give"
    for service in rendered.of("Service"):
        assert {one["port"] for one in service["spec"]["ports"]} == set(ports.values())
    for policy in rendered.of("NetworkPolicy"):
        opened = [one["port"] for one in policy["spec"]["ingress"][0]["ports"]]
        assert opened == list(ports.values())
        assert settings.routes[0].upstream.port not in opened


def test_probes_ask_where_the_admin_server_is(rendered: Rendered) -> None:
    admin = Address.parse(
        expand(rendered.environment(FIELDS)["LEADER_HINTS_ADMIN"], {"NODE_IP": "10.0.0.7"})
    )
    for name, path in (
        ("startupProbe", "/livez"),
        ("livenessProbe", "/livez"),
        ("readinessProbe", "/readyz"),
    ):
        asked = rendered.proxy[name]["httpGet"]
        assert (asked["path"], asked["port"]) == (path, "hints-admin")
        # The kubelet asks at the pod's address, unless another is set.
        assert asked.get("host") == (admin.host if admin.is_loopback else None)
    if admin.is_loopback:
        assert rendered.pod["spec"]["hostNetwork"] is True


def test_it_may_do_nothing_that_it_need_not(rendered: Rendered) -> None:
    context = rendered.pod["spec"].get("securityContext", {}) | rendered.proxy["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert rendered.proxy["resources"]["limits"]["memory"]
    assert rendered.proxy["resources"]["requests"]["memory"]


def test_it_leaves_after_its_broker(rendered: Rendered) -> None:
    spec = rendered.pod["spec"]
    if rendered.workload["kind"] == "DaemonSet":
        assert spec["priorityClassName"] == "system-node-critical"
    elif rendered.proxy in (spec["initContainers"] or ()):
        assert rendered.proxy["restartPolicy"] == "Always"
    else:
        *command, at_most = rendered.proxy["lifecycle"]["preStop"]["exec"]["command"]
        assert command == ["leader-hints", "wait-gone", "--at-most"]
        assert float(at_most) + 30 <= spec["terminationGracePeriodSeconds"]


def test_helm_and_kustomize_run_the_same_container(tmp_path: Path) -> None:
    need("kustomize", "helm")
    for folder, chart in (
        ("daemonset", daemonset_chart()),
        ("example", brokers_chart(tmp_path / "charts")),
    ):
        ours, theirs = kustomized(folder), chart
        assert bare(ours) == bare(theirs)
        for name in ("hostNetwork", "dnsPolicy", "tolerations", "nodeSelector"):
            assert ours.pod["spec"].get(name) == theirs.pod["spec"].get(name)


def test_the_chart_and_the_images_have_the_packages_version() -> None:
    need("kustomize", "helm")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for rendered in (kustomized("daemonset"), kustomized("example"), daemonset_chart()):
        assert rendered.proxy["image"] == f"leader-hints:{version}"
    for chart in ("leader-hints", "example"):
        read = yaml.safe_load((ROOT / "deploy" / "helm" / chart / "Chart.yaml").read_text())
        assert read["version"] == version


def bare(rendered: Rendered) -> dict[str, Any]:
    """The container without what may differ: names of ports, and who sets the same rights where."""
    container = dict(rendered.proxy)
    container.pop("imagePullPolicy", None)
    container["ports"] = [
        {key: value for key, value in port.items() if key != "name"} for port in container["ports"]
    ]
    given = rendered.pod["spec"].get("securityContext", {}) | container["securityContext"]
    given.pop("fsGroup", None)
    container["securityContext"] = given
    return container


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("hints=loud", "hints"),
        ("hint=on", "hint"),
        ("settings.routes=x", "settings"),
        ("routes[0].listen=nonsense", "listen"),
        ("mode=both", "mode"),
        ("routes[0].client_tls.mode=maybe", "client_tls"),
        ("routes[0].client_tls.certificates=x", "client_tls"),
        ("routes[0].sasl.mechanism=LDAP", "sasl"),
        ("routes[0].proxy_protocol=yes", "proxy_protocol"),
        ("admin=broker-1:9100", "admin broker-1:9100"),
        ("admin=10.0.0.7:9100", r"admin 10\.0\.0\.7:9100"),
    ],
)
def test_the_chart_refuses_values_that_mean_nothing(value: str, says: str) -> None:
    need("helm")
    with pytest.raises(AssertionError, match=says):
        daemonset_chart(value)


@pytest.mark.parametrize("admin", ["127.0.0.1:9100", "localhost:9100", "[::1]:9100"])
def test_a_pods_loopback_address_is_refused_since_no_probe_reaches_it(
    tmp_path: Path, admin: str
) -> None:
    need("helm")
    with pytest.raises(AssertionError, match="the kubelet cannot reach a loopback address"):
        brokers_chart(tmp_path / "charts", f"admin={admin}")


#: A route with all that docs/security.md has, as the settings would take it.
_SECURED: dict[str, Any] = {
    "listen": "0.0.0.0:9092",
    "upstream": "${NODE_IP}:19092",
    "client_tls": {
        "mode": "terminate",
        "certificate": "/keys/proxy.crt",
        "key": "/keys/proxy.key",
        "key_password": "env:KEY_PASSWORD",
        "ca": "/keys/ca.crt",
        "minimum_version": "1.3",
    },
    "upstream_tls": {"enabled": True, "ca": "/keys/ca.crt", "server_name": "broker-1.example.com"},
    "peer_tls": {"enabled": True, "ca": "/keys/ca.crt"},
    "sasl": {"mechanism": "PLAIN", "username": "u", "password": "file:/keys/password"},
    "proxy_protocol": True,
}


def test_a_route_of_the_chart_takes_what_the_settings_take(tmp_path: Path) -> None:
    need("helm")
    values = tmp_path / "values.json"
    values.write_text(json.dumps({"routes": [_SECURED]}))
    rendered = daemonset_chart(files=(values,))
    (given,) = rendered.of("ConfigMap")
    file = tmp_path / "leader-hints.yaml"
    file.write_text(given["data"]["leader-hints.yaml"])

    (route,) = load_settings({}, {"NODE_IP": "10.0.0.7"}, file).routes

    assert _SECURED.keys() == RouteSettings.model_fields.keys() - {"name"}
    expected = RouteSettings.model_validate(_SECURED | {"upstream": "10.0.0.7:19092"})
    assert route == expected


def test_secrets_are_mounted_where_they_are_named(tmp_path: Path) -> None:
    need("helm", "kubernetes-validate")
    secret = ("extraVolumes[0].name=keys", "extraVolumes[0].secret.secretName=kafka-keys")
    mount = ("extraVolumeMounts[0].name=keys", "extraVolumeMounts[0].mountPath=/keys")
    variable = ("extraEnv[0].name=LEADER_HINTS_LOG__LEVEL", "extraEnv[0].value=debug")
    values = (*secret, *mount, *variable)
    for rendered in (daemonset_chart(*values), brokers_chart(tmp_path / "charts", *values)):
        validate(rendered, tmp_path)
        volumes = {one["name"]: one for one in rendered.pod["spec"]["volumes"]}
        assert volumes["keys"]["secret"] == {"secretName": "kafka-keys"}
        assert {"name": "keys", "mountPath": "/keys"} in rendered.proxy["volumeMounts"]
        assert rendered.environment(FIELDS)["LEADER_HINTS_LOG__LEVEL"] == "debug"


def test_a_policy_without_the_brokers_labels_is_refused(tmp_path: Path) -> None:
    need("helm")
    with pytest.raises(AssertionError, match=r"networkPolicy\.podLabels"):
        daemonset_chart("mode=sidecar", *_POLICY)


def test_brokers_of_the_example_advertise_the_proxy() -> None:
    need("kustomize")
    example = kustomized("example")
    (broker,) = example.pod["spec"]["containers"]
    port = next(one["containerPort"] for one in example.proxy["ports"] if one["name"] == "hints")
    assert f"KAFKA_ADVERTISED_LISTENERS=CLIENTS://$name:{port}," in broker["command"][-1]
