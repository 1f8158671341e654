"""The common part of all importers: the list of calls that they produce, and its conversion to a module and a folder to
keep."""

from .folder import write_folder as write_folder
from .network import network as network
from .problems import Problems as Problems
from .program import Call as Call
from .program import Frame as Frame
from .program import Program as Program
from .program import ValueRef as ValueRef
from .program import Weight as Weight
from .program import WeightRef as WeightRef
