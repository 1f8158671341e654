"""The common part of all importers: the list of calls that they produce, and its conversion to a module and to a folder
with a model file."""

from .folder import write_folder as write_folder
from .network import network as network
from .problems import Problems as Problems
from .program import ImportedProgram as ImportedProgram
from .program import ModuleFrame as ModuleFrame
from .program import ProgramCall as ProgramCall
from .program import ValueRef as ValueRef
from .program import Weight as Weight
from .program import WeightRef as WeightRef
