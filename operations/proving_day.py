"""Proving day: steps that test claims which only a real AWS account can confirm.

`make proving-day` prints the steps. `make proving-day ACCOUNT=123456789012` runs them in that
account, with the stage `proving` of samconfig.toml. `STEP=name` runs only one step. Afterwards, run
`make remove STAGE=proving`. docs/proving-day.md has the same list. Nobody has run the steps yet.

`make rehearse` makes a dry run on the emulator of AWS. Each step then makes its changes and its
checks, but waits for nothing, and does not require a result that only AWS can give.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from operations import deploy, pause, preflight, versions
from operations.stages import CONFIG, ROOT, Account, Refused, Stage, command, stage, table_names
from sandbox.template import template

STAGE: Final = "proving"
_PAUSE: Final = 5.0  # seconds between two checks
# The alarms that roll back an upgrade of any function.
_WATCHING: Final = template()["Globals"]["Function"]["DeploymentPreference"]["Alarms"]
_TAKE_BACK: Final = [alarm["Ref"].removesuffix("Alarm") for alarm in _WATCHING]
_TABLE: Final = "checkout_sessions"  # the table that the step `restored` restores
EDGE: Final = ROOT / "operations" / "edge.yaml"
_AWS: Final = "execute-api.us-east-1.amazonaws.com"  # where an edge finds the emulator's API
_MAILBOX: Final = "success@simulator.amazonses.com"  # Amazon's mailbox for tests


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `proves` is the tested claim; `emulator` is the part that `make rehearse` tests."""

    name: str
    proves: str
    cost: str
    emulator: str
    run: Callable[[Proof], str]


class Proof:
    """The account and the stage, with the actions and checks that the steps share."""

    def __init__(self, account: Account, chosen: Stage, *sam: str, dry: bool = False) -> None:
        """`sam` are options of `sam deploy`. A `dry` run is on the emulator."""
        self.account = account
        self.stage = chosen
        self.changed = False
        self._sam = sam
        self._dry = dry

    def deploy(self, **parameters: str) -> None:
        """Deploy with parameters that differ from the stage's. Raises Refused."""
        self.changed = bool(parameters)
        deploy.deploy(self.account, self._with(parameters), self._sam)

    def deploy_once(self, **parameters: str) -> None:
        """Run only `sam deploy`, with these parameters and no second step. Raises Refused."""
        deploy.sam(self.account, self.stage, *self._sam, overrides=parameters)

    def upgrade(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """Begin an upgrade that publishes new versions, and return while the upgrade runs."""
        self.changed = True
        revised = self._with({"Revision": f"p{time.time():.0f}"})
        return deploy.begun(self.account, revised, *self._sam)

    def put_back(self) -> None:
        """Deploy the stage as samconfig.toml describes it, if a step has changed it."""
        if self.changed:
            for name in _TAKE_BACK:
                self.until(f"the end of {name}", partial(_over, self, name), 30)
            self.deploy()

    def _with(self, parameters: Mapping[str, str]) -> Stage:
        chosen = {**self.stage.chosen, **parameters}
        return Stage(STAGE, self.stage.stack, chosen, self.stage.config)

    def resources(self, kind: str) -> dict[str, str]:
        """Return the stack's resources of a type: physical ids by logical id."""
        return self.account.resources(self.stage.stack, kind)

    def get(self, path: str, base: str | None = None) -> int:
        """Return the status of a GET request to the stage. Raises Refused if there is no answer."""
        address = base or self.account.outputs(self.stage.stack)["BaseUrl"]
        try:
            with urllib.request.urlopen(f"{address}{path}", timeout=30) as answer:  # noqa: S310
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            return int(refused.code)
        except (urllib.error.URLError, TimeoutError) as failed:
            if self._dry:  # the emulator is slow, and its addresses are not public names
                return 0
            raise Refused(f"{address} does not answer: {failed}") from None

    def require(self, holds: bool, otherwise: str) -> None:
        """Raise Refused with `otherwise` unless `holds`. A dry run never raises."""
        if not holds and not self._dry:
            raise Refused(otherwise)

    def until(self, what: str, seen: Callable[[], bool], minutes: float) -> float:
        """Wait until `seen` returns True. Return the seconds of waiting.

        Raises Refused after `minutes`. A dry run calls `seen` once.
        """
        began = time.monotonic()
        while not seen() and not self._dry:
            if time.monotonic() - began > minutes * 60:
                raise Refused(f"not seen within {minutes} minutes: {what}")
            time.sleep(_PAUSE)
        return time.monotonic() - began

    def set_off(self, alarm: str) -> None:
        """Set an alarm to ALARM. The state lasts until CloudWatch next evaluates the metric."""
        physical = self.resources("AWS::CloudWatch::Alarm")[f"{alarm}Alarm"]
        self.account.client("cloudwatch").set_alarm_state(
            AlarmName=physical, StateValue="ALARM", StateReason="proving day"
        )

    def alarm(self, name: str) -> str:
        """Return an alarm's state."""
        physical = self.resources("AWS::CloudWatch::Alarm")[f"{name}Alarm"]
        watch = self.account.client("cloudwatch")
        found: str = watch.describe_alarms(AlarmNames=[physical])["MetricAlarms"][0]["StateValue"]
        return found

    @contextmanager
    def edge(self, **parameters: str) -> Iterator[dict[str, str]]:
        """Create an edge (CloudFront), yield the outputs of its stack, and delete the edge."""
        formation = self.account.client("cloudformation", "us-east-1")
        endpoint = self.account.outputs(self.stage.stack)["HttpApiEndpoint"]
        if self._dry:
            endpoint = f"https://{endpoint.partition('://')[2].partition('.')[0]}.{_AWS}"
        given = {"HttpApiEndpoint": endpoint, "Region": self.account.region, **parameters}
        name = formation.create_stack(
            StackName=f"{self.stage.stack}-edge",
            TemplateBody=EDGE.read_text("utf-8"),
            Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in given.items()],
        )["StackId"]
        try:
            formation.get_waiter("stack_create_complete").wait(StackName=name)
            [described] = formation.describe_stacks(StackName=name)["Stacks"]
            yield {each["OutputKey"]: each["OutputValue"] for each in described["Outputs"]}
        finally:
            formation.delete_stack(StackName=name)
            formation.get_waiter("stack_delete_complete").wait(StackName=name)

    def stop(self) -> None:
        """Stop the stage. In a dry run, no function is running when the stage stops."""
        longest = _PAUSE if self._dry else pause.LONGEST
        pause.stop(self.account, self.stage, lambda seconds: time.sleep(min(seconds, longest)))

    def run(self, module: str, *arguments: str) -> str:
        """Run `python -m MODULE` with the stage's settings; return the output. Raises Refused."""
        outputs = self.account.outputs(self.stage.stack)
        settings = {
            "DATABASE_URL": outputs["DatabaseUrl"],
            "BASE_URL": outputs["BaseUrl"],
            "ENCRYPTION_KEY_SECRET": outputs["EncryptionKeySecret"],
            "DETAILS_KMS_KEY": outputs["StackKeyArn"],
        }
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **settings},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Refused(f"{module} {arguments[0]}: {done.stderr.strip()}")
        return done.stdout.strip()

    def version(self) -> str:
        """Return the version of the function `api` to which its alias `live` points."""
        function = self.resources("AWS::Lambda::Function")["ApiFunction"]
        alias = self.account.client("lambda").get_alias(FunctionName=function, Name="live")
        return str(alias["FunctionVersion"])

    def weights(self) -> Mapping[str, float]:
        """Return the traffic shares of the new versions of `api`; none if no upgrade is running."""
        function = self.resources("AWS::Lambda::Function")["ApiFunction"]
        alias = self.account.client("lambda").get_alias(FunctionName=function, Name="live")
        found: Mapping[str, float] = alias.get("RoutingConfig", {}).get(
            "AdditionalVersionWeights", {}
        )
        return found

    def named(self) -> Iterator[str]:
        """Yield the tables, functions, log groups and schedules named after the stack."""
        client, begin = self.account.client, f"{self.stage.stack}-"
        for page in client("dynamodb").get_paginator("list_tables").paginate():
            yield from (each for each in page["TableNames"] if each.startswith(begin))
        for page in client("lambda").get_paginator("list_functions").paginate():
            names = (each["FunctionName"] for each in page["Functions"])
            yield from (each for each in names if each.startswith(begin))
        for prefix in (f"/{self.stage.stack}/", f"/aws/vendedlogs/{self.stage.stack}/"):
            groups = client("logs").describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
            yield from (each["logGroupName"] for each in groups)
        schedules = client("scheduler").list_schedules(NamePrefix=begin)["Schedules"]
        yield from (each["Name"] for each in schedules)


# --- the steps ---


def first_failure(proof: Proof) -> str:
    """Deploy with a certificate that does not exist. CloudFormation must roll everything back."""
    if proof.account.stack(proof.stage.stack) is not None:
        return "left out, because the stack exists: `make remove STAGE=proving` first"
    wrong = f"arn:aws:acm:{proof.account.region}:123456789012:certificate/none"
    try:
        proof.deploy_once(DomainName="proving.example.com", CertificateArn=wrong)
    except Refused:
        left = sorted(proof.named())
        if left:
            raise Refused(f"the failed deployment left behind: {left}") from None
        return "rolled back, nothing left"
    proof.require(False, "a deployment with a wrong certificate succeeded")
    return "not shown"


def deployed(proof: Proof) -> str:
    """Deploy in two steps with protection."""
    proof.deploy(DeletionProtection="true")
    found = proof.account.stack(proof.stage.stack) or {}
    tables = proof.account.client("dynamodb")
    protected = [
        tables.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]
        for name in table_names(proof.stage.stack)
    ]
    if not found["EnableTerminationProtection"] or not all(protected):
        raise Refused("the stack or a table is not protected")
    if proof.get("/api/health") != 200:
        raise Refused("/api/health does not answer 200")
    return "deployed, protected, healthy"


def gradual(proof: Proof) -> str:
    """Change a parameter. A tenth of the traffic must go to the new version first."""
    with proof.upgrade() as running:
        try:
            took = proof.until("a weight of 0.1", lambda: 0.1 in proof.weights().values(), 10)
            statuses = [proof.get("/api/health") for _ in range(100)]
        finally:
            status = running.wait()
    if status or set(statuses) != {200} or proof.weights():
        raise Refused(f"exit {status}, answers {set(statuses)}, weights {proof.weights()}")
    return f"10 % after {took:.0f} s, then all; 100 of 100 requests answered meanwhile"


def taken_back(proof: Proof) -> str:
    """Raise each alarm during an upgrade. CodeDeploy must roll the upgrade back."""
    for name in _TAKE_BACK:
        before = proof.version()
        with proof.upgrade() as running:
            try:
                proof.until("a weight of 0.1", lambda: 0.1 in proof.weights().values(), 10)
                proof.set_off(name)
            finally:
                status = running.wait()
        holds = status != 0 and proof.version() == before and not proof.weights()
        proof.require(holds, f"{name}: exit {status}, version {proof.version()}, not {before}")
        proof.until(f"the end of {name}", partial(_over, proof, name), 30)
    return f"rolled back by each of {', '.join(_TAKE_BACK)}"


def _over(proof: Proof, alarm: str) -> bool:
    return proof.alarm(alarm) != "ALARM"


def undone(proof: Proof) -> str:
    """Undo an upgrade, and deploy again. CodeDeploy must not refuse the deployment."""
    before = proof.version()
    proof.deploy(Revision=f"p{time.time():.0f}", TrafficShift="AllAtOnce")
    new = proof.version()
    versions.undo(proof.account, proof.stage)
    if new == before or proof.version() != before:
        raise Refused(f"version {proof.version()} after the undo of {new}, instead of {before}")
    proof.deploy()
    proof.changed = True  # this deployment overrode TrafficShift, because aliases were moved
    left = versions.moved(proof.account, proof.stage.stack)
    if left or proof.version() in (before, new):
        raise Refused(f"version {proof.version()} after the deployment; moved are {left}")
    return f"undone from {new} to {before}, and deployed again as {proof.version()}"


def alarms(proof: Proof) -> str:
    """Raise each alarm. The alarm topic must send notices (look for them at its subscription)."""
    names = [name.removesuffix("Alarm") for name in proof.resources("AWS::CloudWatch::Alarm")]
    for name in names:
        proof.set_off(name)
    return f"{len(names)} notices must have arrived: {', '.join(sorted(names))}"


def silence(proof: Proof) -> str:
    """Stop the schedule. SweepStandsStill must be raised for lack of values, and then recover."""
    scheduler = proof.account.client("scheduler")
    [name] = proof.resources("AWS::Scheduler::Schedule").values()
    proof.until("a running sweep", lambda: proof.alarm("SweepStandsStill") == "OK", 15)
    pause.set_state(scheduler, name, "DISABLED")
    try:
        off = proof.until("the alarm", lambda: proof.alarm("SweepStandsStill") == "ALARM", 20)
    finally:
        pause.set_state(scheduler, name, "ENABLED")
    on = proof.until("its end", lambda: proof.alarm("SweepStandsStill") == "OK", 20)
    return f"on after {off:.0f} s, off after {on:.0f} s"


def refused_share(proof: Proof) -> str:
    """Send only requests that are refused. Their share must raise the alarm RequestsRefused."""

    def seen() -> bool:
        with ThreadPoolExecutor(4) as clients:
            list(clients.map(proof.get, ["/api/checkout/sessions"] * 8))
        return proof.alarm("RequestsRefused") == "ALARM"

    took = proof.until("RequestsRefused", seen, 30)
    return f"on after {took:.0f} s: the average of 4xx is the share of requests"


def throttled_index(proof: Proof) -> str:
    """Limit an index to one write a second. The product must count the throttled writes.

    The operator must create sessions meanwhile, as docs/proving-day.md describes.
    """
    table = table_names(proof.stage.stack)[2]
    tables, watch = proof.account.client("dynamodb"), proof.account.client("cloudwatch")

    def limit(units: int) -> None:
        throughput = {"MaxWriteRequestUnits": units, "MaxReadRequestUnits": -1}
        update = {"IndexName": "by_merchant", "OnDemandThroughput": throughput}
        tables.update_table(TableName=table, GlobalSecondaryIndexUpdates=[{"Update": update}])

    def seen() -> bool:
        now = time.time()
        points = watch.get_metric_statistics(
            Namespace="CheckoutSessions",
            MetricName="TablesThrottled",
            Dimensions=[{"Name": "stack", "Value": proof.stage.stack}],
            StartTime=now - 600,
            EndTime=now,
            Period=60,
            Statistics=["Sum"],
        )
        return bool(points["Datapoints"])

    limit(1)
    try:
        took = proof.until("TablesThrottled", seen, 15)
    finally:
        limit(-1)
    return f"counted after {took:.0f} s"


def reserved(proof: Proof) -> str:
    """Reserve one execution for the function `pay` and request fifty pages at once.

    The other functions must still answer. Lambda keeps 100 executions of an account unreserved, so
    a new account has none to reserve, and the step is left out.
    """
    limits = proof.account.client("lambda").get_account_settings()["AccountLimit"]
    if limits["UnreservedConcurrentExecutions"] <= preflight.UNRESERVED:
        total = limits["ConcurrentExecutions"]
        return f"left out, because the account has only {total} executions: ask AWS for more"
    proof.deploy(PayConcurrency="1", TrafficShift="AllAtOnce")
    with ThreadPoolExecutor(50) as clients:
        pages = list(clients.map(proof.get, ["/pay/cs_none"] * 50))
    health = proof.get("/api/health")
    holds = health == 200 and any(status >= 500 for status in pages)
    proof.require(holds, f"pages answered {sorted(set(pages))}, health {health}")
    return f"{sum(status >= 500 for status in pages)} of 50 pages refused, the API unharmed"


def access_log(proof: Proof) -> str:
    """Read the access log. Each line must have the route, and none may have a session's id."""
    proof.get("/pay/cs_0000000000000000000000")
    name = f"/aws/vendedlogs/{proof.stage.stack}/access"
    logs = proof.account.client("logs")
    proof.until(
        "a line", lambda: bool(logs.filter_log_events(logGroupName=name, limit=1)["events"]), 10
    )
    lines = [each["message"] for each in logs.filter_log_events(logGroupName=name)["events"]]
    if any("cs_" in line for line in lines) or not all("route" in json.loads(x) for x in lines):
        raise Refused("a line has no route, or a session's id")
    return f"{len(lines)} lines, no session in them"


def edge(proof: Proof) -> str:
    """Put an edge (CloudFront with WAF) in front of the stage, and remove it.

    A client above its limit must get 429, and the stage's direct address must answer 403.
    """
    direct = proof.account.outputs(proof.stage.stack)["HttpApiEndpoint"]
    with proof.edge(EdgeRequests="100", EdgeApiRequests="100") as found:
        secret = proof_of(found["ProofSecret"])
        # DomainName stays empty, because a domain closes the direct address, which the edge uses.
        own = {"DomainName": "", "BaseUrl": found["BaseUrl"], "EdgeProof": secret}
        proof.deploy(**own, TrafficShift="AllAtOnce")
        try:
            with ThreadPoolExecutor(8) as clients:
                list(clients.map(proof.get, ["/api/health"] * 400))
            took = proof.until("429", lambda: proof.get("/api/health") == 429, 10)
            closed = proof.get("/api/health", base=direct)
            proof.require(closed == 403, f"the direct address answered {closed}")
        finally:
            proof.deploy()
    return f"429 after {took:.0f} s more; the direct address answers 403"


def proof_of(secret: str) -> str:
    """Return EdgeProof for a secret: a reference that CloudFormation replaces by its value."""
    return f"{{{{resolve:secretsmanager:{secret}:SecretString}}}}"


def stopped(proof: Proof) -> str:
    """Stop the stage. Nothing may answer until it is started again."""
    proof.stop()
    try:
        answer = proof.get("/api/health")
        proof.require(answer >= 500, f"a stopped stage answered {answer}")
    finally:
        pause.start(proof.account, proof.stage)
    took = proof.until("an answer", lambda: proof.get("/api/health") == 200, 5)
    return f"{answer} while stopped, 200 after {took:.0f} s"


def restored(proof: Proof) -> str:
    """Restore a table under another name, stop the stage, and replace the table by the copy."""
    began = time.monotonic()
    fetched = proof.run("operations.restore", "fetch", _TABLE)
    proof.stop()
    refunds = None  # a stage whose table was replaced does not start until its refunds are held
    try:
        proof.run("operations.restore", "swap", _TABLE, "--functions-are-stopped")
        proof.run("checkout.cli", "hold-refunds")
        refunds = "held"
    finally:
        pause.start(proof.account, proof.stage, refunds)
    proof.until("an answer", lambda: proof.get("/api/health") == 200, 5)
    tables, name = proof.account.client("dynamodb"), f"{proof.stage.stack}-{_TABLE}"
    tables.delete_table(TableName=f"good-{name}")
    # A restored table is protected, and no deployment changes that, because its parameter is as it
    # was.
    tables.update_table(TableName=name, DeletionProtectionEnabled=proof.stage.protected)
    return f"in {(time.monotonic() - began) / 60:.0f} minutes: {fetched.splitlines()[-1]}"


def mail(proof: Proof) -> str:
    """Send an e-mail from the stage's sender. SES must accept it."""
    sender = proof.stage.parameters["ReceiptSender"]
    if not sender:
        return "left out, because the stage has no ReceiptSender"
    body = {"Text": {"Data": "Proving day"}}
    sent = proof.account.client("sesv2").send_email(
        FromEmailAddress=sender,
        Destination={"ToAddresses": [_MAILBOX]},
        Content={"Simple": {"Subject": {"Data": "Proving day"}, "Body": body}},
    )
    return f"accepted as {sent['MessageId']}"


def cold_starts(proof: Proof) -> str:
    """Read the start times of new environments from Lambda's own log lines."""
    logs, found = proof.account.client("logs"), []
    for function in ("api", "pay"):
        query = logs.start_query(
            logGroupName=f"/{proof.stage.stack}/{function}",
            startTime=int(time.time()) - 86_400,
            endTime=int(time.time()),
            queryString="filter @type = 'REPORT' and ispresent(@initDuration) "
            "| stats count(*) as n, pct(@initDuration, 50) as p50, max(@initDuration) as max",
        )["queryId"]
        results = partial(logs.get_query_results, queryId=query)
        proof.until("the query", partial(_complete, results), 2)
        rows = results()["results"]
        values = {each["field"]: each["value"] for row in rows for each in row}
        found.append(f"{function} {values}")
    return "; ".join(found)


def _complete(results: Callable[[], Any]) -> bool:
    return bool(results()["status"] == "Complete")


def loop(proof: Proof) -> str:
    """Check that Lambda's loop detection does not stop the sender, which enqueues for itself."""
    function = proof.resources("AWS::Lambda::Function")["WebhookSenderFunction"]
    settings = proof.account.client("lambda").get_function_recursion_config(FunctionName=function)
    found = f"RecursiveLoop is {settings['RecursiveLoop']}"
    proof.require(settings["RecursiveLoop"] == "Allow", found)
    return found


STEPS: Final = (
    Step(
        "first-failure",
        "a first deployment that fails leaves nothing behind, so the next one works",
        "0.01 USD",
        "shown with another failing resource; the deletion of key and secret is not shown",
        first_failure,
    ),
    Step(
        "deploy",
        "two steps, protected tables and stack, a healthy API on the alias",
        "0.02 USD, then 0.4 USD a day",
        "shown; CodeDeploy's resources are not there (TrafficShift=AllAtOnce)",
        deployed,
    ),
    Step(
        "gradual",
        "a changed parameter alone publishes versions, and traffic moves by tenths",
        "0",
        "the versions are shown; weights are ignored and CodeDeploy is missing",
        gradual,
    ),
    Step(
        "taken-back",
        "each alarm that watches all functions rolls back an upgrade",
        "0",
        "no alarm does it there, but a failing resource rolls the upgrade back",
        taken_back,
    ),
    Step(
        "undo",
        "`make undo` moves all aliases back, and the next deployment goes through",
        "0",
        "shown; CodeDeploy, which refuses moved aliases, is missing",
        undone,
    ),
    Step(
        "alarms",
        "each alarm reaches the people who subscribed to the topic",
        "0",
        "shown with values beyond the thresholds, to a queue",
        alarms,
    ),
    Step(
        "silence",
        "SweepStandsStill goes off if values are missing",
        "0",
        "missing values are ignored",
        silence,
    ),
    Step(
        "refused-share",
        "the average of 4xx is a share, so RequestsRefused means what it says",
        "0.02 USD",
        "thresholds are shown; API Gateway sends no metrics there",
        refused_share,
    ),
    Step(
        "throttled-index",
        "throttling of an index is counted and has an alarm",
        "0.01 USD",
        "nothing is throttled there; unit tests check the counting",
        throttled_index,
    ),
    Step(
        "reserved",
        "a reserved share limits one function and spares the others (not in a new account)",
        "0.01 USD",
        "not shown",
        reserved,
    ),
    Step(
        "access-log",
        "the access log has routes and no sessions",
        "0.01 USD",
        "the emulator's API Gateway writes no access log",
        access_log,
    ),
    Step(
        "edge",
        "WAF limits an address, CloudFront sends the secret that `EdgeProof` refers to, and only "
        "requests with it are answered",
        "0.10 USD, for an hour of the web ACL",
        "shown, but no address is limited",
        edge,
    ),
    Step(
        "stopped",
        "`make stop` stops all functions, and `make start` starts them",
        "0",
        "shown, but the functions of a stopped stage still answer",
        stopped,
    ),
    Step(
        "restored",
        "a restored table takes the place of the running one, and the stage answers",
        "0.10 USD",
        "shown with two moments",
        restored,
    ),
    Step(
        "mail",
        "SES accepts an e-mail from the stage's sender",
        "0",
        "not shown",
        mail,
    ),
    Step(
        "cold-starts",
        "the start time of a new environment, by function",
        "0.01 USD",
        "not comparable",
        cold_starts,
    ),
    Step(
        "loop",
        "Lambda does not stop the sender's own queue",
        "0",
        "the property is shown, not its effect",
        loop,
    ),
)


def listed() -> str:
    """Return the steps as a table, for docs/proving-day.md."""
    rows = [f"| `{e.name}` | {e.proves} | {e.cost} | {e.emulator} |" for e in STEPS]
    return "\n".join(["| step | proves | cost | on the emulator |", "|---|---|---|---|", *rows])


def prove(
    expected: str, steps: Collection[str], config: Path = CONFIG, *sam: str, dry: bool = False
) -> None:
    """Run `steps`, or all if it is empty, and then restore the stage's parameters.

    `expected` is the account's number. `sam` are options of `sam deploy`. A `dry` run is on the
    emulator. Raises Refused if a step fails or the credentials belong to another account.
    """
    account = Account()
    found: str = account.client("sts").get_caller_identity()["Account"]
    if found != expected:
        raise Refused(f"The credentials belong to the account {found}, not to {expected}.")
    proof = Proof(account, stage(STAGE, config), *sam, dry=dry)
    try:
        for step in STEPS:
            if not steps or step.name in steps:
                print(f"{step.name:<16} {step.run(proof)}", flush=True)
    except Refused as failed:
        print(f"{step.name:<16} failed: {failed}", flush=True)
        raise
    finally:
        proof.put_back()


def main(arguments: list[str]) -> int:
    """List the steps, or run them; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m operations.proving_day", description=__doc__)
    parser.add_argument(
        "--account", help="run in this AWS account; by default the steps are listed"
    )
    names = [each.name for each in STEPS]
    parser.add_argument("steps", nargs="*", choices=[*names, []], help="the steps (default: all)")
    parser.add_argument("--config", type=Path, default=CONFIG, help="another samconfig.toml")
    parser.add_argument("--dry-run", metavar="TEMPLATE", help="deploy this, on the emulator")
    chosen = parser.parse_args(arguments)
    if chosen.account is None:
        print(listed())
        return 0
    sam = () if chosen.dry_run is None else ("-t", chosen.dry_run)
    dry = chosen.dry_run is not None
    return command(lambda: prove(chosen.account, chosen.steps, chosen.config, *sam, dry=dry))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
