"""Finds the held responses that news is about, without a walk through all of them."""

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.leadership_answer import LeadershipAnswer, leadership_answer
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.hints.own_answers import OwnAnswers
from leader_hints.core.route import Route

#: Topics of responses that are found no longer of which one step takes note.
_DROPPED_AT_ONCE = 500
#: Responses, counted by topic, of which one step takes note that their broker has answered.
_ASKED_AT_ONCE = 1000

#: Topics with news, and responses that wait for them, that one step looks at.
_NEWS_AT_ONCE = 1000
#: News is for responses that came after the first time and until the second; this is for all.
_FOR_ALL = -math.inf, math.inf

#: Responses in the order in which they came.
_Responses = dict[HeldResponse, None]
#: Names and ids of topics of which there was news in a view since a count of its changes; ``None``:
#: perhaps of any. Looked up once for all routes: there may be hundreds, and thousands of topics.
_News = dict[tuple[LeaderView, int], Mapping[Topic, None] | None]


class _OfRoute:
    """The responses of one route, and what of the route their judgements rest on.

    ``by_topic``: by the topics as clients give them. ``unasked``: those of them with a partition
    about which the broker has not answered since. ``answers``: what it has answered about topics
    that are waited for. ``seen``: the view's changes that were taken note of. ``news``: topics with
    news that was not passed on yet, and for which responses it is.
    """

    __slots__ = ("answers", "basis", "by_topic", "news", "responses", "route", "seen", "unasked")

    def __init__(self, route: Route) -> None:
        self.route = route
        self.responses: _Responses = {}
        self.by_topic: dict[Topic, _Responses] = {}
        self.unasked: dict[Topic, _Responses] = {}
        self.answers: dict[Topic, OwnAnswers] = {}
        self.news: dict[Topic, tuple[float, float]] = {}
        self.basis = _basis(route)
        self.seen = route.broker.view.changes.count if route.broker.view is not None else 0

    def add(self, response: HeldResponse) -> None:
        self.responses[response] = None
        response.answers = self.answers

    def wait(self, response: HeldResponse, topic: Topic) -> None:
        self.by_topic.setdefault(topic, {})[response] = None
        self.unasked.setdefault(topic, {})[response] = None

    def drop(self, response: HeldResponse, topic: Topic) -> None:
        _discard(self.unasked, topic, response)
        _discard(self.by_topic, topic, response)
        if self.answers and topic not in self.by_topic:
            self.answers.pop(topic, None)

    def waiting(self, responses: Iterable[HeldResponse]) -> Iterator[HeldResponse]:
        """Iterate over those of ``responses`` that are still to be found."""
        return (response for response in responses if response in self.responses)

    def answers_about(self, topic: Topic) -> OwnAnswers:
        view = self.route.broker.view
        about = view.topics.get(topic) if view is not None else None
        answers = self.answers.get(topic)
        if answers is None or answers.about is not about:
            if answers is not None:
                # They were about another topic of the name, so the next one is news again.
                self.unasked[topic] = {**self.by_topic[topic]}
            answers = self.answers[topic] = OwnAnswers(about)
        return answers

    def topics_of(self, topics: Collection[Topic]) -> Iterator[Topic]:
        """Iterate over the waiting topics that are among ``topics``, which are names and keys."""
        view = self.route.broker.view
        if view is None or len(topics) > len(self.unasked):
            for topic in [*self.unasked]:
                if topic in topics or (view is not None and view.topics.key(topic) in topics):
                    yield topic
            return
        called = (alias for topic in topics for alias in view.topics.aliases(topic))
        for topic in dict.fromkeys(chain(topics, called)):
            if topic in self.unasked and (topic in topics or view.topics.key(topic) in topics):
                yield topic

    def take_changes(self, news: _News) -> None:
        """Take note of the topics whose judgement may be another one since the last call."""
        view, basis = self.route.broker.view, _basis(self.route)
        waiting = self.by_topic
        if basis != self.basis:
            self.basis = basis
            self.seen = view.changes.count if view is not None else 0
            self.news = dict.fromkeys(waiting, _FOR_ALL)
        elif view is not None and view.changes.count != self.seen:
            since = view, self.seen
            if since not in news:
                news[since] = _changed_since(*since)
            topics, self.seen = news[since], view.changes.count
            if topics is None:
                self.news = dict.fromkeys(waiting, _FOR_ALL)
                return
            # There may be very many of either.
            few, many = (waiting, topics) if len(waiting) < len(topics) else (topics, waiting)
            self.news.update((topic, _FOR_ALL) for topic in few if topic in many)

    def take_news(self, topic: Topic, after: float, since: float) -> None:
        """Take note of news for the responses to a topic that came between these times."""
        noted = self.news.get(topic, (after, since))
        self.news[topic] = min(after, noted[0]), max(since, noted[1])

    def pass_on(self) -> Iterator[HeldResponse | None]:
        """Iterate over what there is news for; ``None`` stands for what was looked at in vain.

        Between any two of them others may be added and removed, and there may be more news.
        """
        while self.news:
            now, self.news = self.news, {}
            for topic, (after, since) in now.items():
                if topic in self.answers:
                    self.answers_about(topic)
                yield None
                for response in [*self.by_topic.get(topic, ())]:
                    is_for = after < response.since <= since and response in self.responses
                    yield response if is_for else None


class HeldIndex:
    """Held responses by route and topic, and by link.

    A response may have very many topics. It is found by those of which a partition was judged, and
    is dropped from them in steps.
    """

    def __init__(self) -> None:
        self._routes: dict[int, _OfRoute] = {}
        self._links: dict[int, _Responses] = {}
        #: Those that are to be dropped from their topics.
        self._leaving: deque[HeldResponse] = deque()
        #: Of routes with news: what is left to be passed on.
        self._passing: dict[_OfRoute, Iterator[HeldResponse | None]] = {}

    @property
    def unfinished(self) -> bool:
        """Whether :meth:`drop_some` or :meth:`some_news` has more to do."""
        return bool(self._leaving or self._passing)

    def add(self, response: HeldResponse) -> None:
        """Have a response found."""
        # First by what ends it whatever becomes of the rest.
        self._links.setdefault(response.held.link.number, {})[response] = None
        route = response.route
        # By identity: the index keeps the route, so no other one gets its number.
        of_route = self._routes.get(id(route))
        if of_route is None:
            of_route = self._routes[id(route)] = _OfRoute(route)
        of_route.add(response)

    def judged(self, response: HeldResponse, partitions: Iterable[FailedPartition]) -> None:
        """Have a response found by the topics of ``partitions``, which were judged."""
        of_route, topics = self._routes[id(response.route)], response.topics
        for partition in partitions:
            topic = partition.failure.topic
            if topic not in topics:
                topics[topic] = None
                of_route.wait(response, topic)

    def remove(self, response: HeldResponse) -> None:
        """Have a response found no longer."""
        of_route = self._routes[id(response.route)]
        del of_route.responses[response]
        link = response.held.link.number
        del self._links[link][response]
        if not self._links[link]:
            del self._links[link]
        if len(response.topics) > _DROPPED_AT_ONCE:
            self._leaving.append(response)
            return
        for topic in response.topics:
            of_route.drop(response, topic)
        self._end(of_route)

    def drop_some(self) -> None:
        """Drop responses that are found no longer from some of their topics."""
        left = _DROPPED_AT_ONCE
        while self._leaving and left > 0:
            response = self._leaving[0]
            topics, of_route = response.topics, self._routes[id(response.route)]
            while topics and left > 0:
                of_route.drop(response, topics.popitem()[0])
                left -= 1
            if topics:
                return
            self._leaving.popleft()
            self._end(of_route)

    def _end(self, of_route: _OfRoute) -> None:
        """Forget a route of which nothing is left."""
        if not (of_route.responses or of_route.by_topic):
            del self._routes[id(of_route.route)]

    def of_link(self, link: int) -> list[HeldResponse]:
        """Return the responses of a link."""
        return [*self._links.get(link, ())]

    def of_route(self, route: Route) -> list[HeldResponse]:
        """Return the responses of a route."""
        of_route = self._routes.get(id(route))
        return [*of_route.responses] if of_route is not None else []

    def some_news(self) -> list[HeldResponse]:
        """Return some of the responses that there is news for, be it of their topics or route."""
        news: _News = {}
        for of_route in self._routes.values():
            of_route.take_changes(news)
            self._has_news(of_route)
        found: list[HeldResponse] = []
        left = _NEWS_AT_ONCE
        for of_route in [*self._passing]:
            looked = [*islice(self._passing[of_route], left)]
            found += [response for response in looked if response is not None]
            left -= len(looked)
            if left == 0:
                break
            del self._passing[of_route]
        return found

    def _has_news(self, of_route: _OfRoute) -> None:
        if of_route.news and of_route not in self._passing:
            self._passing[of_route] = of_route.pass_on()

    def asked(
        self, route: Route, topics: Collection[Topic], since: float
    ) -> Iterator[list[HeldResponse]]:
        """Take an answer of the route's broker, and yield what it is news for, in steps.

        ``topics``: names and keys that it is about; ``since``: when it was asked. No further answer
        about a topic is news for a response. Between steps others may be added and removed.
        """
        of_route = self._routes.get(id(route))
        if of_route is None:
            return
        waiting = [*of_route.topics_of(topics)]
        yield []
        news: list[HeldResponse] = []
        looked = 0
        for topic in waiting:
            if topic not in of_route.unasked:
                # What waited for it was removed between two steps.
                continue
            of_route.answers_about(topic).asked_at = since
            for response in [*of_route.unasked[topic]]:
                if response.since <= since:
                    _discard(of_route.unasked, topic, response)
                    news += of_route.waiting((response,))
                looked += 1
                if looked % _ASKED_AT_ONCE == 0:
                    yield news
                    news = []
        yield news

    def contradicted(self, response: HeldResponse, topic: Topic) -> None:
        """Take it that the next answer about a topic is news for a response again."""
        self._routes[id(response.route)].unasked.setdefault(topic, {})[response] = None

    def probed(self, route: Route, errors: Mapping[Partition, int], since: float) -> None:
        """Take whether the route's broker leads, which may be news; see :meth:`some_news`.

        ``errors``: by partition; ``since``: when it was asked.
        """
        of_route = self._routes.get(id(route))
        view = route.broker.view
        if of_route is None or view is None:
            return
        named: dict[str, list[tuple[Topic, bool]]] = {}
        for (name, number), error in errors.items():
            answer = leadership_answer(error)
            if answer in (None, LeadershipAnswer.UNAWARE):
                continue
            if name not in named:
                named[name] = [
                    (topic, view.topics.may_be_former(topic))
                    for topic in view.topics.aliases(name)
                    if topic in of_route.by_topic and view.topics.name(topic) == name
                ]
            for topic, former in named[name]:
                after = of_route.answers_about(topic).probed(
                    number, answer, since, may_be_former=former
                )
                of_route.take_news(topic, after, since)


def _changed_since(view: LeaderView, count: int) -> Mapping[Topic, None] | None:
    changed = view.changes.since(count)
    return None if changed is None else dict.fromkeys(chain.from_iterable(changed))


def _basis(route: Route) -> tuple[LeaderView | None, int, object, int | None, frozenset[int]]:
    """Return what judgements rest on beside the time and the leaders."""
    view = route.broker.view
    awaited = view.metadata_brokers.awaited if view is not None else 0
    return view, awaited, route.broker.endpoints, route.broker.node, route.broker.others


def _discard(by_topic: dict[Topic, _Responses], topic: Topic, response: HeldResponse) -> None:
    responses = by_topic.get(topic)
    if responses is not None:
        responses.pop(response, None)
        if not responses:
            del by_topic[topic]
