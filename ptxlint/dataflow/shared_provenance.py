"""Where data read from shared memory was written: by which instruction, in which thread.

For each register that a load defines, and each of its 16-bit halves, a `Movement` says which
registers of which stores the half may come from and how the reading thread tells the writing one.
Addresses must be linear in the bits of the thread index (`ptxlint.dataflow.lane_words`), which the
layouts and swizzles of Triton are. Which stores can reach a load is found by walking back over the
control-flow graph until every byte that the load reads is covered; the stages of pipelined loops
are told apart by walking in the graph unrolled over them (`ptxlint.dataflow.stages`).

The kernel is taken to be free of data races, barriers and waits for asynchronous copies included: a
load sees what the last store before it in program order wrote, whichever thread that was. Where
several threads write the same bytes at one instruction they are taken to write the same data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.lane_bits import Level
from ptxlint.dataflow.lane_map import (
    LaneMap,
    assemble,
    compose_some,
    lane_width,
    pulled,
    span_value,
)
from ptxlint.dataflow.lane_words import Condition, LaneWords, State, Word, complement, make
from ptxlint.dataflow.linear import Piece, merged_pieces
from ptxlint.dataflow.shared_cells import (
    MAX_SHARED,
    Age,
    Chunk,
    Lanes,
    MatrixShape,
    Write,
    all_lanes,
    cells_of,
    copy_chunks,
    descriptor_chunk,
    descriptors,
    idle_lanes,
    is_descriptor,
    lanes_where,
    matrix_chunks,
    matrix_shape,
    shared_address,
    vector_chunks,
    writes_shared,
)
from ptxlint.dataflow.shared_match import MatchMemory, Source, SourceTable, moved
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.dataflow.stages import StageGraph
from ptxlint.dataflow.tensor_instruction import descriptor_register
from ptxlint.dataflow.uniformity import Uniformity, UniformityAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Register

BUDGET_PER_INSTRUCTION: Final = 200
"""Steps allowed for each instruction of the function, plus a fixed start."""
_MAX_ROUNDS: Final = 4
"""So many rounds back it is counted when something was stored."""
_MAX_PASSAGES: Final = 512

NO_WIDTH: Final = "the number of threads is not known to be a power of two in one dimension"
NO_ADDRESS: Final = "its address is not linear in the bits of the thread index"
UNKNOWN_STORE: Final = "a store to shared memory has an address that is not known"
UNKNOWN_WRITE: Final = "other instructions than plain stores write to shared memory"
SOME_THREADS: Final = "only some threads come to a store to shared memory"
OTHER_CTAS: Final = "other CTAs of the cluster may write to shared memory"
NOT_WRITTEN: Final = "not all that is read was written before"
NOT_LINEAR: Final = "what threads read is not linear in the bits of their index"
NOT_A_LOAD: Final = "it is no load from shared memory that is followed"
NOT_FOLLOWED: Final = "the shape of the matrix is not one that is followed"


class Payload(NamedTuple):
    """A part of what a store puts into shared memory.

    `operand` is the register's place in the store's vector operand (0 without one, and for the
    chunk that a `cp.async` copies), `part` the place of the part in it, in units of `bits`: 16, or
    8 where single bytes are stored or loaded.
    """

    instr: Instr
    operand: int
    part: int
    bits: int


class Passage(NamedTuple):
    """One way of data: the reading threads t with `t & fixed == at` get it from the thread
    `start`, xored with `images[i]` for each set bit i of t among the free ones.

    `maybe`: the store has a guard that is not understood; where it is false an older, unknown
    word is read.
    """

    payload: Payload
    fixed: int
    at: int
    start: int
    images: tuple[int, ...]
    maybe: bool
    width: int
    """How many bits the index of a writing thread has."""
    rounds: tuple[Age, ...] = ()
    """By loop around the load, innermost first, when it was stored."""

    def push(self, stored: LaneMap) -> LaneMap | None:
        """What the reading threads have, from a map over the threads that stored."""
        found = compose_some(stored, self.start, self.images)
        if found is None:
            return None
        return found._replace(fixed=found.fixed | self.fixed, at=found.at | self.at)

    def pull(self, loaded: LaneMap) -> LaneMap | None:
        """What the storing threads must have had, those of them that are read from.

        None if no map fits: if threads that read the same have different numbers.
        """
        return pulled(self.fixed, self.at, self.start, self.images, self.width, loaded)

    def source(self, thread: int) -> int | None:
        """The thread whose data a reading thread gets; None if it gets them in another way."""
        if thread & self.fixed != self.at:
            return None
        return self.start ^ span_value(self.images, thread)


class Origin(NamedTuple):
    """All that comes to a grain of shared memory from one payload, stored in the same round.

    `pieces` map the reading index to the storing thread, and `source` is the place of one of them.
    Equal `pieces` of one function are one object.
    """

    source: Source
    pieces: tuple[Piece, ...]


class OriginMemo:
    """What the origins of all movements of one function have in common."""

    __slots__ = (
        "_contents",
        "_said",
        "_starts",
        "_ways",
        "contents",
        "grains",
        "interned",
        "pieces",
        "ways",
    )

    def __init__(self) -> None:
        self.ways: list[tuple[Payload, bool, tuple[Age, ...]]] = []
        """Payload, `maybe` and rounds, each once."""
        self.contents: list[int] = []
        """By way: a number for its payload and `maybe`."""
        self._contents: dict[tuple[Payload, bool], int] = {}
        self.pieces: dict[tuple[tuple[int, int], ...], tuple[Piece, ...]] = {}
        """By shapes and where they begin, the same in as few pieces as there are."""
        self.interned: dict[tuple[Piece, ...], tuple[Piece, ...]] = {}
        self.grains: dict[int, list[Origin]] = {}
        """By the identity of a list of sources: what comes to the grain."""
        self._starts: dict[tuple[int, int, int, int], int] = {}
        self._ways: dict[tuple[Payload, bool, tuple[Age, ...]], int] = {}
        self._said: dict[tuple[int, ...], tuple[tuple[int, int], ...]] = {}

    def way(self, source: Source, byte: int, bits: int) -> int:
        """The number of the way that begins at a byte of a source's grain."""
        # Writes and chunks live as long as the movements do, so that they can be told by id.
        write, chunk, offset = source.write, source.chunk, source.offset
        key = id(write), id(chunk), offset + byte, bits
        found = self._starts.get(key)
        if found is None:
            operand, at = chunk.place(offset + byte)
            part = at * 8 // bits if chunk.element else 0
            what = Payload(write.instr, operand, part, bits), write.maybe
            way = *what, write.rounds
            found = self._ways.setdefault(way, len(self.ways))
            if found == len(self.ways):
                self.ways.append(way)
                self.contents.append(self._contents.setdefault(what, len(self._contents)))
            self._starts[key] = found
        return found

    def pieces_of(self, sources: dict[tuple[int, int], Source]) -> tuple[Piece, ...]:
        """The maps of some sources, by shape and where they begin, in as few pieces as there are.

        Equal ones are one object.
        """
        key = tuple(sources)
        found = self.pieces.get(key)
        if found is None:
            apart = dict.fromkeys([p for s in sources.values() for p in s.pieces])
            merged = tuple(merged_pieces(list(apart)) if len(apart) > 1 else apart)
            found = self.pieces[key] = self.interned.setdefault(merged, merged)
        return found

    def said(self, ways: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Pairs of ways of which the second one says of any round what the first says of one."""
        found = self._said.get(ways)
        if found is None:
            same: dict[tuple[Payload, bool], list[int]] = {}
            for number in ways:
                same.setdefault(self.ways[number][:2], []).append(number)
            found = self._said[ways] = tuple(
                (a, b)
                for known in same.values()
                for a in known
                for b in known
                if a != b and _is_said(self.ways[a][2], self.ways[b][2])
            )
        return found


def _is_said(rounds: tuple[Age, ...], other: tuple[Age, ...]) -> bool:
    """True if one way's rounds are among those of another one: what was stored before a loop is
    read in its first round, in the second one, and in any."""
    if len(rounds) != len(other):
        return False
    return all(
        a == b or (a.header == b.header and b.rounds is None and not (a.inside or b.inside))
        for a, b in zip(rounds, other, strict=True)
    )


class Movement:
    """All ways in which one part of a loaded register may have come. They cover all threads."""

    __slots__ = ("_bits", "_byte", "_passages", "_sources", "_width")

    def __init__(self, sources: list[Source], byte: int, bits: int, width: int) -> None:
        """`byte` is where in the sources' grains the part begins; for the rest see `Passage`."""
        self._sources = sources
        self._byte = byte
        self._bits = bits
        self._width = width
        self._passages: tuple[Passage, ...] | None = None

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The ways, each once; built when asked for, as most are not."""
        if self._passages is None:
            found = [passage for s in self._sources for passage in self._through(s)]
            self._passages = tuple(dict.fromkeys(found))
        return self._passages

    def _through(self, source: Source) -> list[Passage]:
        write, chunk = source.write, source.chunk
        operand, at = chunk.place(source.offset + self._byte)
        payload = Payload(write.instr, operand, at * 8 // self._bits, self._bits)
        rest = (write.maybe, self._width, *write[6:])
        return [Passage(payload, *piece, *rest) for piece in source.pieces]

    @property
    def grain(self) -> int:
        """What the parts have in common that come from the same grains of shared memory."""
        return id(self._sources)

    def way(self, source: Source, known: OriginMemo) -> int:
        """The number of what one of the sources has for this part."""
        return known.way(source, self._byte, self._bits)

    def origins(self, known: OriginMemo) -> list[Origin]:
        """The ways by payload and round, in as few pieces as there are; each once.

        They are the same for all parts of a grain: only payloads then differ.
        """
        found = known.grains.get(id(self._sources))
        if found is None:
            found = known.grains[id(self._sources)] = self._find_origins(known)
        return found

    def _find_origins(self, known: OriginMemo) -> list[Origin]:
        byte, bits, way = self._byte, self._bits, known.way
        numbers = [way(source, byte, bits) for source in self._sources]
        contents = known.contents
        if len({contents[number] for number in numbers}) == len(numbers):
            return [Origin(s, known.pieces_of({(s.pair, id(s.shape)): s})) for s in self._sources]
        ways: dict[int, dict[tuple[int, int], Source]] = {}
        for number, source in zip(numbers, self._sources, strict=True):
            found = ways.get(number)
            if found is None:
                found = ways[number] = {}
            found[source.pair, id(source.shape)] = source
        for narrow, wide in known.said(tuple(ways)) if len(ways) > 1 else ():
            if narrow in ways and wide in ways and ways[narrow].keys() <= ways[wide].keys():
                del ways[narrow]
        return [
            Origin(next(iter(sources.values())), known.pieces_of(sources))
            for sources in ways.values()
        ]

    def joined(self, others: list[Movement]) -> Movement:
        """The ways of this and of other movements of the same part."""
        if not others:
            return self
        sources = list(self._sources)
        for other in others:
            sources += other._sources
        return Movement(sources, self._byte, self._bits, self._width)

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """What is stored, each thing once."""
        return tuple(dict.fromkeys(p.payload for p in self.passages))

    @property
    def maybe(self) -> bool:
        """True if older words than those of the payloads may be read instead."""
        return any(p.maybe for p in self.passages)

    def push(self, stored: Mapping[Payload, LaneMap]) -> LaneMap | None:
        """The map of the loaded value, from those of all payloads; None if there is none."""
        pieces = []
        for passage in self.passages:
            outer = stored.get(passage.payload)
            piece = None if outer is None else passage.push(outer)
            if piece is None:
                return None
            pieces.append(piece)
        return assemble(pieces)

    def pull(self, loaded: LaneMap) -> tuple[LaneMap | None, ...]:
        """By passage the map that the stored value must have; None where no map fits."""
        return tuple(passage.pull(loaded) for passage in self.passages)


class Loaded(NamedTuple):
    """What is known of one register that a load defines: a movement for each `bits` of it."""

    bits: int
    parts: tuple[Movement | None, ...]


class Matrix(NamedTuple):
    """What is known of a matrix that an instruction reads from shared memory.

    The reading index of its movements is no thread: its low `rows` bits are the row of A or the
    column of B, the next `depth` bits are k, and above them are the bits of the thread index from
    7 on, which tell warpgroups apart. `loaded.parts` is by 16 bits (or bytes) of an element.
    """

    rows: int
    depth: int
    kind: str
    """The type of its elements."""
    loaded: Loaded | None
    reason: str


class _Claim(NamedTuple):
    """The bytes that a load gets from a write."""

    write: Write
    cells: int


class _Reader(NamedTuple):
    """What one load reads: chunks as its threads see them, by index bits."""

    lanes: Lanes
    chunks: tuple[Chunk, ...]


class SharedProvenance:
    """Answers for the loads of one function, worked out when asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._uniformity: Uniformity = facts.get(UniformityAnalysis)
        self._instrs = facts.function.instrs
        self.width = lane_width(facts)
        """How many bits a thread index has, None if that is not known."""
        self.budget = facts.budget(SharedProvenanceAnalysis.name, 20_000, BUDGET_PER_INSTRUCTION)
        self._found: dict[int, tuple[Loaded, ...]] = {}
        self._why: dict[int, str] = {}
        self._matrices: dict[tuple[int, int], Matrix] = {}
        self._set: _Setting | None = None

    def of(self, instr: Instr) -> tuple[Loaded, ...]:
        """For each register that a load defines where its parts come from; () if not known."""
        found = self._found.get(instr.index)
        if found is None:
            found = self._found[instr.index] = self._find(instr)
        return found

    def matrix(self, instr: Instr, operand: int) -> Matrix | None:
        """Where the elements of an operand of `wgmma` or `tcgen05.mma` come from; None if it is no
        descriptor.

        Operand 1 is A, operand 2 is B.
        """
        if not is_descriptor(instr, operand):
            return None
        key = (instr.index, operand)
        found = self._matrices.get(key)
        if found is None:
            found = self._matrices[key] = self._find_matrix(instr, operand)
        return found

    def _find_matrix(self, instr: Instr, operand: int) -> Matrix:
        if self.width is None:
            return Matrix(0, 0, "", None, NO_WIDTH)
        own = descriptor_register(instr)
        word = None if own is None else self._setting(self.width).number(instr, own)
        shape = matrix_shape(instr, operand, word)
        if shape is None:
            return Matrix(0, 0, "", None, NOT_FOLLOWED)
        search = _Search(self, self._setting(self.width), instr, shape)
        loaded = search.run()
        whole = loaded[0] if loaded and None not in loaded[0].parts else None
        reason = "" if whole else search.reason
        return Matrix(shape.rows, shape.depth, shape.kind, whole, reason)

    def _setting(self, width: int) -> _Setting:
        if self._set is None:
            self._set = _Setting(self._facts, self._ssa, self._uniformity, width)
            self.budget.left -= self._set.graph.steps
        return self._set

    def why(self, instr: Instr) -> str:
        """Why some part of what a load defines is not known; "" if all is."""
        self.of(instr)
        return self._why.get(instr.index, "")

    def _find(self, instr: Instr) -> tuple[Loaded, ...]:
        if self.width is None:
            self._why[instr.index] = NO_WIDTH
            return ()
        if instr.opcode not in ("ld", "ldmatrix") or not _is_shared(instr):
            self._why[instr.index] = NOT_A_LOAD
            return ()
        search = _Search(self, self._setting(self.width), instr)
        found = search.run()
        self._why[instr.index] = search.reason
        return found


def _is_shared(instr: Instr) -> bool:
    return instr.shape.space == "shared" and not instr.shape.has("shared::cluster")


class _Setting:
    """What all loads of a function have in common: the stores and the unrolled graph."""

    def __init__(self, facts: Facts, ssa: Ssa, uniformity: Uniformity, width: int) -> None:
        self.ssa = ssa
        self.width = width
        self.everyone = all_lanes(width)
        self.uniformity = uniformity
        self.instrs = facts.function.instrs
        self.words = LaneWords(ssa, width)
        self._quiet: dict[int, LaneWords] = {}
        self._loops: LoopForest = facts.get(LoopsAnalysis)
        self._symbols = _symbol_places(facts)
        self.events: dict[int, list[Instr]] = {}
        """By block the instructions that may write to shared memory, in order."""
        wanted = []
        cfg = ssa.cfg
        touches: dict[Shape, tuple[bool, bool]] = {}
        for instr in self.instrs:
            shape = instr.shape
            if shape not in touches:
                touches[shape] = writes_shared(instr), _is_shared(instr)
            writes, reads = touches[shape]
            matrices = descriptors(instr)
            if not (writes or reads or matrices) or not cfg.is_reachable(instr):
                continue
            if writes:
                self.events.setdefault(cfg.block_of[instr.index], []).append(instr)
            if writes or reads:
                address = shared_address(instr)
                if address is not None and isinstance(address.base, Register):
                    wanted.append(self.words.value_read(instr, address.base))
                guard = ssa.guard_value(instr)
                if guard is not None:
                    wanted.append(guard)
            wanted += [self.words.value_read(instr, r) for r in matrices]
        self.graph = StageGraph(ssa, self.words, wanted)
        self._writes: dict[tuple[int, int], Write] = {}
        self._in_blocks: dict[tuple[int, int], list[tuple[int, Write]]] = {}
        self._aged: dict[tuple[int, int, tuple[Age, ...]], Write] = {}
        self._cells: dict[tuple[Any, ...], int] = {}
        self.memory = MatchMemory()
        self.divergent = self._divergent()

    def _divergent(self) -> list[Write]:
        """The writes to which not all threads come, and those of other CTAs, in every state."""
        out = []
        for block, events in self.events.items():
            out += [_from_elsewhere(e) for e in events if _is_remote(e)]
            if self.is_divergent(block):
                numbers = {self.graph.state_of[n] for n in self.graph.at_block.get(block, ())}
                out += [self.write(e, number) for e in events for number in sorted(numbers)]
        return out

    def around(self, instr: Instr) -> list[int]:
        """The headers of the loops around an instruction, innermost first."""
        out = []
        loop = self._loops.innermost(self.ssa.cfg.block_of[instr.index])
        while loop is not None:
            out.append(loop.header)
            loop = loop.parent
        return out

    def aged(self, ages: tuple[Age, ...], block: int, before: int) -> tuple[Age, ...]:
        """The ages after a step back from a block to one before it."""
        if not any(age.header == block and age.inside for age in ages):
            return ages
        out = []
        for age in ages:
            loop = self._loops.with_header(age.header)
            if loop is not None and age.header == block and age.inside:
                inside = self._loops.contains(loop, before)
                rounds = age.rounds
                if inside and rounds is not None:
                    rounds = rounds + 1 if rounds < _MAX_ROUNDS else None
                age = Age(age.header, rounds, inside)
            out.append(age)
        # Inside another round of the outer loop, those of the inner one are counted anew.
        return tuple(out)

    def is_divergent(self, block: int) -> bool:
        """True if not all threads of the CTA come to a block: some go elsewhere or have left."""
        reach = self.uniformity.block_divergence(block, stable_memory=True)
        return max(reach.level, reach.exit_level) > Level.CTA

    def state(self, number: int) -> State:
        """The numbers of a state."""
        return self.graph.states[number]

    def lanes(self, instr: Instr, number: int) -> tuple[Lanes | None, bool]:
        """The threads for which a guard holds (None: none), and whether it is understood."""
        guard = self.ssa.guard_value(instr)
        if guard is None:
            return self.everyone, True
        found = self.words.under(guard, number, self.state(number))
        condition: Condition | None = None if isinstance(found, Word) else found
        if instr.shape.guard == "@!":
            condition = complement(condition)
        if condition is None:
            return self.everyone, False
        return lanes_where(condition, self.width), True

    def descriptor(self, instr: Instr, operand: int, number: int) -> Word | None:
        """A matrix descriptor, with the address in it counted in all of shared memory."""
        found = self.words.read(instr, instr.operands[operand], number, self.state(number))
        if found is None or self._symbols.get(found.symbol, -1) != 0:
            return None
        return found

    def number(self, instr: Instr, register: Register) -> int | None:
        """A number that is the same whenever an instruction reads it."""
        found = self.words.plain(self.words.value_read(instr, register))
        if not isinstance(found, Word) or not found.is_uniform or found.symbol:
            return None
        return found.constant

    def word(self, instr: Instr, number: int) -> Word | None:
        """The address of a load or store, as an offset in all of shared memory."""
        address = shared_address(instr)
        if address is None:
            return None
        found = self._words(instr).address(instr, address, number, self.state(number))
        if found is None or found.symbol not in self._symbols:
            return None
        if found.add + found.moving >= MAX_SHARED:
            return None
        place = self._symbols[found.symbol]
        return make(found.add + place, found.fix, found.basis, 32)

    def _words(self, instr: Instr) -> LaneWords:
        """How addresses are evaluated: those of lanes that give none may be anything."""
        muted = idle_lanes(instr)
        if not muted:
            return self.words
        found = self._quiet.get(muted)
        if found is None:
            found = self._quiet[muted] = LaneWords(self.ssa, self.width, muted)
        return found

    def write(self, instr: Instr, number: int) -> Write:
        """A store in a state."""
        key = (instr.index, number)
        found = self._writes.get(key)
        if found is None:
            found = self._writes[key] = self._find_write(instr, number)
        return found

    def writes_in(self, block: int, number: int) -> list[tuple[int, Write]]:
        """The stores of a block in a state, last first, each with its instruction's index."""
        key = block, number
        found = self._in_blocks.get(key)
        if found is None:
            events = self.events.get(block, ())
            found = [(event.index, self.write(event, number)) for event in reversed(events)]
            self._in_blocks[key] = found
        return found

    def write_at(self, write: Write, number: int, ages: tuple[Age, ...]) -> Write:
        """A store in a state, done in these rounds; one object for all that read it."""
        key = write.instr.index, number, ages
        found = self._aged.get(key)
        if found is None:
            found = self._aged[key] = write._replace(rounds=ages)
        return found

    def _find_write(self, instr: Instr, number: int) -> Write:
        lanes, known = self.lanes(instr, number)
        if lanes is None:
            return Write(instr, self.everyone, (), 0, False, "")
        if shared_address(instr) is None or not _is_shared(instr):
            return Write(instr, lanes, (), 0, not known, UNKNOWN_WRITE)
        word = self.word(instr, number)
        chunks = None if word is None else _written(instr, word)
        if chunks is None:
            return Write(instr, lanes, (), 0, not known, UNKNOWN_STORE)
        cells = 0
        for chunk in chunks:
            cells |= self.cells(chunk, lanes)
        return Write(instr, lanes, tuple(chunks), cells, not known, "")

    def cells(self, chunk: Chunk, lanes: Lanes) -> int:
        """The bytes that a chunk covers, as bits."""
        word = chunk.word
        key = (word.fix, word.basis, chunk.width, lanes)
        found = self._cells.get(key)
        if found is None:
            found = self._cells[key] = cells_of(word, chunk.width, lanes)
        return found << word.add


def _is_remote(instr: Instr) -> bool:
    """True for what may write to the shared memory of other CTAs of the cluster."""
    shape = instr.shape
    if shape.has("multicast::cluster"):
        return True
    return shape.has("shared::cluster") and not shape.has("bulk")


def _from_elsewhere(instr: Instr) -> Write:
    """A write that another CTA may do at any time."""
    return Write(instr, Lanes(0, ()), (), 0, True, OTHER_CTAS)


def _written(instr: Instr, word: Word) -> list[Chunk] | None:
    if instr.opcode == "cp":
        return copy_chunks(instr, word)
    if instr.opcode == "stmatrix":
        return matrix_chunks(instr, instr.operands[1], word)
    return vector_chunks(instr, instr.operands[1], word)


def _symbol_places(facts: Facts) -> dict[str, int]:
    """Where each shared variable is put in one numbering of all bytes.

    Variables whose size the launch gives all begin at the same place (PTX ISA, "Arrays as
    external shared memory").
    """
    out: dict[str, int] = {}
    places = 1
    for variable in (*facts.module.variables.values(), *facts.function.variables):
        if variable.space != "shared":
            continue
        if variable.size is None or "extern" in variable.linkage:
            out[variable.name] = 0
        else:
            out[variable.name] = places * MAX_SHARED
            places += 1
    return out


class _Search:
    """The search for the stores behind one load, or behind one matrix operand."""

    def __init__(
        self,
        owner: SharedProvenance,
        setting: _Setting,
        load: Instr,
        matrix: MatrixShape | None = None,
    ) -> None:
        self._owner = owner
        self._set = setting
        self._load = load
        self._matrix = matrix
        self.reason = ""
        """The first reason why some part is not known, "" if all is."""

    def _note(self, reason: str) -> None:
        self.reason = self.reason or reason

    def run(self) -> tuple[Loaded, ...]:
        """What is known of each register; () if nothing is."""
        setting = self._set
        nodes = setting.graph.at_block.get(setting.ssa.cfg.block_of[self._load.index], [])
        found: list[tuple[int, list[list[Movement | None]]]] = []
        for number, node in enumerate(nodes):
            parts = self._in_node(node)
            if parts is None or (number and parts[0] != found[0][0]):
                self._note(NOT_LINEAR)
                return ()
            found.append(parts)
        if not found:
            self._note(NOT_A_LOAD)
            return ()
        out = []
        bits, first = found[0]
        for at, register in enumerate(first):
            joined = [
                self._join([parts[1][at][k] for parts in found]) for k in range(len(register))
            ]
            out.append(Loaded(bits, tuple(joined)))
        return tuple(out)

    def _join(self, parts: list[Movement | None]) -> Movement | None:
        """What is loaded in any of several states; None if it is not known in one."""
        known = [part for part in parts if part is not None]
        return known[0].joined(known[1:]) if len(known) == len(parts) else None

    def _in_node(self, node: int) -> tuple[int, list[list[Movement | None]]] | None:
        """Bits of a part and, by register, the movement of each part; None if nothing is known."""
        setting = self._set
        self._owner.budget.left -= 1
        if self._owner.budget.spent:
            self._note(self._owner.budget.reason)
            return None
        number = setting.graph.state_of[node]
        reader = self._reader(number)
        if reader is None:
            self._note(NO_ADDRESS)
            return None
        wanted = 0
        for chunk in reader.chunks:
            wanted |= setting.cells(chunk, reader.lanes)
        claims, lost = self._walk(node, wanted)
        return self._match(reader, claims, lost, wanted)

    def _reader(self, number: int) -> _Reader | None:
        """What is read in a state; None if the address is not known."""
        setting, load = self._set, self._load
        if self._matrix is not None:
            descriptor = setting.descriptor(load, self._matrix.operand, number)
            if descriptor is None:
                return None
            chunk = descriptor_chunk(self._matrix, descriptor, setting.width)
            return None if chunk is None else _Reader(all_lanes(len(chunk.word.basis)), (chunk,))
        lanes, known = setting.lanes(load, number)
        word = setting.word(load, number)
        if word is None:
            return None
        if load.opcode == "ldmatrix":
            chunks = matrix_chunks(load, load.operands[0], word)
        else:
            chunks = vector_chunks(load, load.operands[0], word)
        if chunks is None:
            return None
        everyone = lanes is None or not known
        return _Reader(setting.everyone if everyone or lanes is None else lanes, tuple(chunks))

    # Walking back -----------------------------------------------------------------------------
    def _walk(self, node: int, wanted: int) -> tuple[list[_Claim], int]:
        """What is read from which write, and the bytes of which the origin is not known."""
        setting, owner = self._set, self._owner
        graph = setting.graph
        lost = 0
        for write in setting.divergent:
            if write.trouble:
                self._note(OTHER_CTAS if write.trouble == OTHER_CTAS else SOME_THREADS)
                return [], wanted
            lost |= write.cells & wanted
        if lost:
            self._note(SOME_THREADS)
        claims: dict[tuple[int, int, tuple[Age, ...]], _Claim] = {}
        seen: dict[tuple[int, tuple[Age, ...]], int] = {}
        before = self._load.index
        ages = tuple(Age(h, 0, True) for h in setting.around(self._load))
        work: list[tuple[int, int, int, tuple[Age, ...]]] = [(node, wanted & ~lost, before, ages)]
        while work:
            current, left, end, ages = work.pop()
            if end < 0:
                left &= ~seen.get((current, ages), 0)
                seen[current, ages] = seen.get((current, ages), 0) | left
            number = graph.state_of[current]
            for at, write in setting.writes_in(graph.blocks[current], number):
                if not left:
                    break
                if 0 <= end <= at:
                    continue
                owner.budget.left -= 1
                if write.trouble:
                    self._note(write.trouble)
                    lost |= left
                    left = 0
                    break
                met = write.cells & left
                if met:
                    left &= ~met
                    old = claims.get((at, number, ages))
                    claims[at, number, ages] = _Claim(
                        setting.write_at(write, number, ages), met | (old.cells if old else 0)
                    )
            if not left:
                continue
            if owner.budget.spent:
                self._note(owner.budget.reason)
                return [], wanted
            if graph.blocks[current] == setting.ssa.cfg.entry:
                self._note(NOT_WRITTEN)
                lost |= left
            block = graph.blocks[current]
            work += [
                (pred, left, -1, setting.aged(ages, block, graph.blocks[pred]))
                for pred in graph.preds[current]
            ]
        return list(claims.values()), lost

    # Matching cells ---------------------------------------------------------------------------
    def _match(
        self, reader: _Reader, claims: list[_Claim], lost: int, wanted: int
    ) -> tuple[int, list[list[Movement | None]]]:
        """Find for each part of each register the threads that wrote it."""
        first = reader.chunks[0]
        grain = _grain([first.element] + [c.width for x in claims for c in x.write.chunks])
        grain = min(grain, *(chunk.width for chunk in reader.chunks))
        stored = [c.element for x in claims for c in x.write.chunks]
        bits = 8 if grain == 1 or 1 in stored else 16
        registers = max(c.operand + max(1, c.width // c.element) for c in reader.chunks)
        out: list[list[Movement | None]] = [
            [None] * (first.element * 8 // bits) for _ in range(registers)
        ]
        table = SourceTable([(x.write, x.cells) for x in claims], grain, wanted, self._set.memory)
        for chunk in reader.chunks:
            for offset in range(0, chunk.width, grain):
                word = moved(chunk.word, offset)
                known = lost and cells_of(word, grain, reader.lanes) << word.add & lost
                sources = None if known else table.find(word, reader.lanes)
                self._owner.budget.left -= 1 + len(sources or ())
                if not sources or len(sources) > _MAX_PASSAGES:
                    self._note(NOT_LINEAR)
                    continue
                for byte in range(0, grain, bits // 8):
                    register, at = chunk.place(offset + byte)
                    movement = Movement(sources, byte, bits, self._set.width)
                    out[register][at * 8 // bits] = movement
        return bits, out


def _grain(widths: list[int]) -> int:
    """The largest of 4, 2, 1 bytes that divides all widths."""
    return next(g for g in (4, 2, 1) if not any(width % g for width in widths))


class SharedProvenanceAnalysis(Analysis[SharedProvenance]):
    """Where data in shared memory come from."""

    name: ClassVar[str] = "shared-provenance"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        SsaAnalysis,
        UniformityAnalysis,
        LoopsAnalysis,
    )

    def run(self, facts: Facts) -> SharedProvenance:
        """Nothing is worked out yet."""
        return SharedProvenance(facts)
