"""The GPUs that code is predicted for, as their data sheets and CUDA describe them.

Sources: NVIDIA's A100, H100 and Blackwell architecture papers, and the table "Technical
Specifications per Compute Capability" of the CUDA C++ Programming Guide.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True)
class Architecture:
    """One GPU: the properties that Inductor's heuristics and Triton query."""

    name: str
    """`sm_90`."""
    capability: tuple[int, int]
    device_name: str
    processors: int
    """Streaming multiprocessors enabled on the product."""
    shared_per_processor: int
    """Bytes."""
    shared_per_block: int
    """Bytes that a block may request (opt-in)."""
    l2_bytes: int
    memory_bytes: int
    clock_khz: int
    memory_clock_khz: int
    memory_bus_bits: int
    registers_per_processor: int = 65536
    threads_per_processor: int = 2048
    threads_per_block: int = 1024
    blocks_per_processor: int = 32
    warp_size: int = 32

    @property
    def number(self) -> int:
        """Compute capability as in Triton's target: 90."""
        return self.capability[0] * 10 + self.capability[1]

    @property
    def most_warps(self) -> int:
        """Warps that a processor holds at most."""
        return self.threads_per_processor // self.warp_size

    def resident_warps(self, warps: int, registers: int | None, shared: int) -> int | None:
        """Warps that a processor holds at a time, of blocks of `warps` warps; None if the
        `registers` of a thread are not known. `shared`: bytes that a block asks for.

        As in CUDA's occupancy calculator: registers are given to a warp in units of 256, to four
        warps at a time, and each block takes 1 KiB of shared memory for itself.
        """
        if registers is None:
            return None
        unit, together = 256, 4
        a_warp = -(-max(registers, 1) * self.warp_size // unit) * unit
        by_registers = self.registers_per_processor // a_warp // together * together // warps
        by_shared = self.shared_per_processor // (shared + KIB)
        by_threads = self.most_warps // warps
        return min(by_registers, by_shared, by_threads, self.blocks_per_processor) * warps

    def properties(self) -> SimpleNamespace:
        """What `torch.cuda.get_device_properties` would return."""
        return SimpleNamespace(
            name=self.device_name,
            major=self.capability[0],
            minor=self.capability[1],
            multi_processor_count=self.processors,
            total_memory=self.memory_bytes,
            regs_per_multiprocessor=self.registers_per_processor,
            max_threads_per_multi_processor=self.threads_per_processor,
            max_threads_per_block=self.threads_per_block,
            warp_size=self.warp_size,
            shared_memory_per_block=48 * KIB,
            shared_memory_per_block_optin=self.shared_per_block,
            shared_memory_per_multiprocessor=self.shared_per_processor,
            L2_cache_size=self.l2_bytes,
            clock_rate=self.clock_khz,
            memory_clock_rate=self.memory_clock_khz,
            memory_bus_width=self.memory_bus_bits,
            is_integrated=False,
            is_multi_gpu_board=False,
            gcnArchName="",
            uuid="",
            pci_bus_id=0,
            pci_device_id=0,
            pci_domain_id=0,
        )

    def driver_properties(self) -> dict[str, int]:
        """What the driver that Triton queries would return."""
        return {
            "max_shared_mem": self.shared_per_block,
            "max_num_regs": self.registers_per_processor,
            "multiprocessor_count": self.processors,
            "warpSize": self.warp_size,
            "sm_clock_rate": self.clock_khz,
            "mem_clock_rate": self.memory_clock_khz,
            "mem_bus_width": self.memory_bus_bits,
        }


ARCHITECTURES = {
    each.name: each
    for each in (
        Architecture(
            name="sm_80",
            capability=(8, 0),
            device_name="NVIDIA A100-SXM4-80GB",
            processors=108,
            shared_per_processor=164 * KIB,
            shared_per_block=163 * KIB,
            l2_bytes=40 * MIB,
            memory_bytes=80 * GIB,
            clock_khz=1_410_000,
            memory_clock_khz=1_593_000,
            memory_bus_bits=5120,
        ),
        Architecture(
            name="sm_90",
            capability=(9, 0),
            device_name="NVIDIA H100 80GB HBM3",
            processors=132,
            shared_per_processor=228 * KIB,
            shared_per_block=227 * KIB,
            l2_bytes=50 * MIB,
            memory_bytes=80 * GIB,
            clock_khz=1_980_000,
            memory_clock_khz=2_619_000,
            memory_bus_bits=5120,
        ),
        Architecture(
            name="sm_100",
            capability=(10, 0),
            device_name="NVIDIA B200",
            processors=148,
            shared_per_processor=228 * KIB,
            shared_per_block=227 * KIB,
            l2_bytes=126 * MIB,
            memory_bytes=180 * GIB,
            clock_khz=1_965_000,
            memory_clock_khz=3_996_000,
            memory_bus_bits=8192,
        ),
    )
}

DEFAULT = "sm_90"
