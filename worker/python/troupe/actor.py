# SPDX-License-Identifier: MIT
"""Messages: sending them, and actors that handle them by their type."""
from __future__ import annotations

import contextlib
import errno
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeVar

from troupe import _troupe
from troupe.data import Buffer, Content, encode
from troupe.reason import code_of, reason_of

Kind = Literal["single", "typed-single", "typed-multi", "routing-key", "pattern"]  # of an exchange, troupe-actor(3)
Target = str | int  # an address such as "group/0", a name or an exchange; or a reference


class Reply(NamedTuple):
    type: str
    data: bytes
    sender: int

    def json(self) -> Any:
        return json.loads(self.data)


class Message(Content):
    """The current message, until its handler returns."""

    __slots__ = ("_message",)

    def __init__(self, message: _troupe.Message) -> None:
        self._message = message

    @property
    def type(self) -> str:
        return self._message.type

    @property
    def key(self) -> bytes | None:
        return self._message.key

    @property
    def payload(self) -> bytes:
        return self._message.payload

    @property
    def sender(self) -> int:
        """A reference; 0 = from outside."""
        return self._message.sender

    @property
    def is_ask(self) -> bool:
        return self._message.ask != 0

    @property
    def ask(self) -> int:
        """The argument for the actor's reply(), even after the handler has returned; 0 = a tell."""
        return self._message.ask

    @property
    def id(self) -> int:
        return self._message.id

    @property
    def sent_at(self) -> float:
        """Seconds since 1970."""
        return self._message.sent_at

    @property
    def timer(self) -> int:
        """The timer that sent it, or 0."""
        return self._message.timer

    @property
    def redelivered(self) -> bool:
        """Whether a worker died while handling it."""
        return self._message.redelivered

    def reply(self, type: str, data: object = None) -> None:
        """Replies with a type, instead of with the handler's return value."""
        self._message.reply(type, encode(data))

    def forward(self, to: int) -> None:
        """Forwards it, with its sender, ask and key."""
        self._message.forward(to)

    def forward_with_key(self, to: int, key: str | Buffer | None) -> None:
        """Forwards it with another key, or none."""
        self._message.forward(to, key)

    def stash(self) -> None:
        """Puts it aside until Actor.unstash_all(). The handler then returns None."""
        self._message.stash()


Handler = Callable[[Message], object]
Method = TypeVar("Method", bound=Callable[..., object])


def on(type: str) -> Callable[[Method], Method]:
    """
    Decorates a method of an Actor that handles messages of that type, and of its descendants without a more specific handler.
    """
    def decorate(method: Method) -> Method:
        setattr(method, "_troupe_type", type)
        return method
    return decorate


class Pending:
    """The future reply to an ask, or end of another actor. drop() ends the ask, and so does the end of this object."""

    def __init__(self, future: _troupe.Future) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        """Whether it has arrived. Unlike wait() and the turns of the actor, reads no new messages."""
        return self._future.done()

    def wait(self, timeout: float | None = None) -> Reply:
        """Waits for it. Raises the handler's error as OSError; TimeoutError: none within that time, or that of the ask."""
        return Reply(*self._future.wait(timeout))

    def then(self, function: Callable[[Pending], object]) -> None:
        """Calls a function, once, where messages are handled, after it has arrived: wait() then returns immediately."""
        self._future.then(lambda _: function(self))

    def drop(self) -> None:
        self._future.drop()


@contextlib.contextmanager
def unique(name: str) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, f"the name '{name}' is in use: groups, exchanges and actors share one name "
                              "space") from None


class Messages(ABC):
    """The methods of workers and clients for messages."""

    @abstractmethod
    def _low(self) -> _troupe.Actor:
        """The extension's actor."""

    def find(self, to: Target) -> int:
        """Returns the reference of an actor, which stays valid. FileNotFoundError: there is no such actor."""
        if isinstance(to, int):
            return to
        try:
            return self._low().lookup(to)
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, f"there is no actor '{to}'; 'troupectl actors' lists them") from None

    @property
    def address(self) -> str:
        """Its own, such as "group/0" or "@3"."""
        return self._low().address()

    @property
    def reference(self) -> int:
        return self._low().self()

    def register(self, name: str) -> None:
        """Gives the actor one more name. FileExistsError: it is taken."""
        with unique(name):
            self._low().register(name)

    def deregister(self, name: str) -> bool:
        """Removes such a name. Returns whether the actor had it."""
        return self._low().deregister(name)

    def tell(self, to: Target, type: str, data: object = None, *, key: str | Buffer | None = None) -> None:
        """Sends a message. If it cannot be delivered, it becomes a dead letter."""
        self._low().tell(self.find(to), type, encode(data), key=key)

    def ask(
        self, to: Target, type: str, data: object = None, *, key: str | Buffer | None = None, timeout: float | None = None,
        reply_type: str | None = None
    ) -> Reply:
        """
        Sends a message and waits for its reply, by default 30 seconds. With `reply_type`, only replies of that type count.
        Raises the handler's error as OSError.
        """
        return self.begin_ask(to, type, data, key=key, timeout=timeout, reply_type=reply_type).wait()

    def begin_ask(
        self, to: Target, type: str, data: object = None, *, key: str | Buffer | None = None, timeout: float | None = None,
        reply_type: str | None = None
    ) -> Pending:
        """Sends a message, without waiting for the reply. Several replies may be waited for in any order."""
        return Pending(self._low().ask(self.find(to), type, encode(data), key=key, timeout=timeout, reply_type=reply_type))

    def reply(self, ask: int, type: str, data: object = None) -> None:
        """Replies to Message.ask, after its handler has returned None."""
        self._low().reply(ask, type, encode(data))

    def monitor(self, who: Target) -> Pending:
        """Returns a Pending that ends when that actor is permanently gone or has failed; its data is the cause."""
        return Pending(self._low().monitor(self.find(who)))

    def new_exchange(self, name: str, kind: Kind) -> int:
        """Creates an exchange, which outlives its creator. Returns its reference. FileExistsError: the name is taken."""
        with unique(name):
            return self._low().exchange_new(name, kind)

    def delete_exchange(self, exchange: Target) -> None:
        """Deletes an exchange. Workers may delete only exchanges that they or their predecessors created."""
        self._low().exchange_delete(self.find(exchange))

    def pause(self, which: Target) -> None:
        """Stops an actor, a group, a cell or an exchange from handling messages until resume(). They are kept."""
        self._low().pause(self.find(which))

    def resume(self, which: Target) -> None:
        self._low().resume(self.find(which))

    def subscribe(self, exchange: Target, type: str = "", key: str | Buffer | None = None) -> None:
        """Subscribes this actor to messages of that type and key that are sent to an exchange."""
        self._low().subscribe(self.find(exchange), type, key)

    def unsubscribe(self, exchange: Target, type: str = "", key: str | Buffer | None = None) -> bool:
        """Ends the subscription of exactly that type and key. Returns whether there was one."""
        return self._low().unsubscribe(self.find(exchange), type, key)

    def tell_after(
        self, delay: float, to: Target, type: str, data: object = None, *, key: str | Buffer | None = None,
        period: float | None = None
    ) -> int:
        """Sends a message after a delay in seconds, and again after each period. Returns the id of the timer."""
        return self._low().timer_after(self.find(to), delay, type, encode(data), key=key, period=period)

    def tell_at(
        self, when: float, to: Target, type: str, data: object = None, *, key: str | Buffer | None = None,
        period: float | None = None
    ) -> int:
        """Like tell_after(), but at a time in seconds since 1970."""
        return self._low().timer_at(self.find(to), when, type, encode(data), key=key, period=period)

    def cancel_timer(self, id: int) -> bool:
        """Returns whether it was set."""
        return self._low().timer_cancel(id)

    def cancel_timers(self, to: Target, type: str) -> int:
        """Cancels all of that type for that recipient. Returns their number."""
        return self._low().timer_cancel_type(self.find(to), type)

    def on_silence(self, timeout: float | None, function: Callable[[], object]) -> None:
        """Calls a function whenever no message has arrived for so many seconds; None = never."""
        self._low().on_silence(timeout, function)

    def on_message(self, handler: Handler) -> None:
        """Sets a function that handles all further messages; it returns NotImplemented to leave a message unhandled."""
        self._low().on_message(lambda message: answer(handler, message))

    def turn(self, timeout: float | None = None) -> bool:
        """Handles at most one message, and waits for it. Returns whether there was one. Workers use run() instead."""
        return self._low().turn(timeout)


def answer(handler: Handler, message: _troupe.Message) -> object:
    """Replies to an ask with the handler's return value, unless that is None."""
    try:
        value = handler(Message(message))
        if value is NotImplemented:
            return NotImplemented
        if value is not None and message.ask:
            message.reply(message.type + ".reply", encode(value))
    except Exception as error:
        return message.fail(code_of(error), reason_of(error))
    return None


class Actor(Messages):
    """
    A worker that handles messages, by methods that are decorated with @on(type). Their return value, unless it is None, is
    the reply to an ask; an exception becomes the error of the asker, and a dead letter.
    """

    def __init__(self) -> None:
        self._actor: _troupe.Actor | None = None
        methods = (getattr(self, name) for name in dir(type(self)) if hasattr(getattr(type(self), name), "_troupe_type"))
        self._become: Handler | None = None
        self._handlers: dict[str, Handler] = {method._troupe_type: method for method in methods}

    def _low(self) -> _troupe.Actor:
        if not self._actor:
            raise RuntimeError("an actor can send only after troupe.run() has begun: send in started()")
        return self._actor

    def begin(self, actor: _troupe.Actor) -> None:
        """For troupe.run()."""
        self._actor = actor
        self.on_message(self._dispatch)
        actor.on_restart(self.restarted)
        self.started()

    def started(self) -> None:
        """Called before the first message: the place to subscribe and to set timers."""

    def restarted(self) -> None:
        """
        Called after each crash of the supervisor. Names, subscriptions and timers are gone: started() creates them again. An
        upgrade keeps all of these.
        """
        self.started()

    def become(self, handler: Handler | None) -> None:
        """Makes one function handle all further messages; None: nothing handles them."""
        self._become = handler or (lambda message: NotImplemented)

    def become_default(self) -> None:
        """Returns to the methods."""
        self._become = None

    def _dispatch(self, message: Message) -> object:
        if self._become:
            return self._become(message)
        at = message.type
        while at not in self._handlers:
            if not at:
                return NotImplemented
            at = at.rpartition(".")[0]
        return self._handlers[at](message)

    def unstash_all(self) -> int:
        """Queues stashed messages before all others. Returns their number."""
        return self._low().unstash_all()

    def leave(self, reason: str = "") -> None:
        """Ends the worker after this message, without a failure; its successor gets the others."""
        self._low().leave(reason)
