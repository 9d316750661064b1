"""Writes a SPIR-V module: sections in their order, and one id for each type and constant."""

import struct

MAGIC = 0x07230203
VERSION_1_3 = 0x00010300

# Opcodes by the specification's names.
OP = {
    "Extension": 10, "ExtInstImport": 11, "ExtInst": 12, "MemoryModel": 14, "EntryPoint": 15,
    "ExecutionMode": 16, "Capability": 17, "Name": 5, "ModuleProcessed": 330, "TypeVoid": 19,
    "TypeBool": 20, "TypeInt": 21, "TypeFloat": 22, "TypeVector": 23, "TypeArray": 28,
    "TypeRuntimeArray": 29, "TypeStruct": 30, "TypePointer": 32, "TypeFunction": 33,
    "ConstantTrue": 41, "ConstantFalse": 42, "Constant": 43, "Function": 54, "FunctionEnd": 56,
    "Variable": 59, "Load": 61, "Store": 62, "AccessChain": 65, "Decorate": 71,
    "MemberDecorate": 72, "CompositeConstruct": 80, "CompositeExtract": 81, "ConvertFToU": 109,
    "ConvertFToS": 110, "ConvertSToF": 111, "ConvertUToF": 112, "UConvert": 113, "SConvert": 114,
    "FConvert": 115, "Bitcast": 124, "UMulExtended": 151, "SNegate": 126, "FNegate": 127,
    "IAdd": 128, "FAdd": 129, "ISub": 130, "FSub": 131, "IMul": 132, "FMul": 133, "UDiv": 134,
    "SDiv": 135, "FDiv": 136, "UMod": 137, "LogicalEqual": 164,
    "LogicalNotEqual": 165, "LogicalOr": 166, "LogicalAnd": 167, "LogicalNot": 168, "Select": 169,
    "IEqual": 170, "INotEqual": 171, "UGreaterThan": 172, "SGreaterThan": 173,
    "UGreaterThanEqual": 174, "SGreaterThanEqual": 175, "ULessThan": 176, "SLessThan": 177,
    "ULessThanEqual": 178, "SLessThanEqual": 179, "FOrdEqual": 180, "FUnordNotEqual": 183,
    "FOrdLessThan": 184, "FOrdGreaterThan": 186, "FOrdLessThanEqual": 188,
    "FOrdGreaterThanEqual": 190, "ShiftRightLogical": 194, "ShiftRightArithmetic": 195,
    "ShiftLeftLogical": 196, "BitwiseOr": 197, "BitwiseXor": 198, "BitwiseAnd": 199, "Not": 200,
    "BitFieldSExtract": 202, "BitFieldUExtract": 203, "BitCount": 205, "ControlBarrier": 224,
    "Phi": 245, "LoopMerge": 246, "SelectionMerge": 247, "Label": 248, "Branch": 249,
    "BranchConditional": 250, "Return": 253,
}  # fmt: skip

CAPABILITY = {
    "Shader": 1, "Float16": 9, "Float64": 10, "Int64": 11, "Int16": 22, "Int8": 39,
    "SignedZeroInfNanPreserve": 4466,
    "StorageBuffer16BitAccess": 4433, "UniformAndStorageBuffer16BitAccess": 4434,
    "StoragePushConstant16": 4435, "StorageBuffer8BitAccess": 4448,
}  # fmt: skip

EXTENSION = {
    "StorageBuffer16BitAccess": "SPV_KHR_16bit_storage",
    "UniformAndStorageBuffer16BitAccess": "SPV_KHR_16bit_storage",
    "StoragePushConstant16": "SPV_KHR_16bit_storage",
    "StorageBuffer8BitAccess": "SPV_KHR_8bit_storage",
    "SignedZeroInfNanPreserve": "SPV_KHR_float_controls",
}

# Execution modes.
_LOCAL_SIZE = 17
_SIGNED_ZERO_INF_NAN_PRESERVE = 4461

# Says to the loader that a device without the capability runs the kernel, too.
_OPTIONAL_NAN_PRESERVE = "dlhal.optional SignedZeroInfNanPreserve"

STORAGE_CLASS = {
    "Input": 1, "Uniform": 2, "Workgroup": 4, "Function": 7, "PushConstant": 9,
    "StorageBuffer": 12,
}  # fmt: skip

DECORATION = {
    "Block": 2, "ArrayStride": 6, "BuiltIn": 11, "Aliased": 20, "NonWritable": 24, "Binding": 33,
    "DescriptorSet": 34, "Offset": 35, "NoContraction": 42,
}  # fmt: skip

BUILT_IN = {"NumWorkgroups": 24, "WorkgroupId": 26, "LocalInvocationId": 27}

# Instructions of the set GLSL.std.450.
GLSL = {
    "RoundEven": 2, "Trunc": 3, "FAbs": 4, "Floor": 8, "Ceil": 9, "Sqrt": 31, "Fma": 50,
    "FindUMsb": 75,
}  # fmt: skip


class Writer:
    """A module under construction. An instruction in the body goes where `code` points."""

    def __init__(self):
        self._next = 1
        self._capabilities = {}
        self._extensions = {}
        self._names = []
        self._processed = []
        self._decorations = []
        self._globals = []
        self._cache = {}
        self._variables = []
        self._interface = []
        self.code = []
        self.capability("Shader")
        self._glsl = self.new_id()

    def new_id(self):
        self._next += 1
        return self._next - 1

    def capability(self, name):
        self._capabilities.setdefault(name, None)
        if name in EXTENSION:
            self._extensions.setdefault(EXTENSION[name], None)

    def name(self, target, text):
        self._names.append(_instruction("Name", target, *_string(text)))

    def processed(self, text):
        """Records how the module was made, for whoever loads it."""
        self._processed.append(_instruction("ModuleProcessed", *_string(text)))

    def decorate(self, target, decoration, *operands):
        self._decorations.append(
            _instruction("Decorate", target, DECORATION[decoration], *operands)
        )

    def decorate_member(self, target, member, decoration, *operands):
        self._decorations.append(
            _instruction("MemberDecorate", target, member, DECORATION[decoration], *operands)
        )

    def once(self, op, *operands):
        """The id of a type: equal operands give the same id."""
        key = (op, operands)
        if key not in self._cache:
            self._cache[key] = self.declare(op, *operands)
        return self._cache[key]

    def declare(self, op, *operands):
        """The id of a type, made anew, so that it can be decorated apart."""
        result = self.new_id()
        self._globals.append(_instruction(op, result, *operands))
        return result

    def constant(self, type_id, *words):
        key = ("Constant", type_id, words)
        if key not in self._cache:
            result = self.new_id()
            self._globals.append(_instruction("Constant", type_id, result, *words))
            self._cache[key] = result
        return self._cache[key]

    def truth(self, type_id, value):
        op = "ConstantTrue" if value else "ConstantFalse"
        if op not in self._cache:
            result = self.new_id()
            self._globals.append(_instruction(op, type_id, result))
            self._cache[op] = result
        return self._cache[op]

    def pointer(self, storage_class, type_id):
        return self.once("TypePointer", STORAGE_CLASS[storage_class], type_id)

    def global_variable(self, storage_class, type_id):
        pointer = self.pointer(storage_class, type_id)
        result = self.new_id()
        self._globals.append(
            _instruction("Variable", pointer, result, STORAGE_CLASS[storage_class])
        )
        if storage_class == "Input":
            self._interface.append(result)
        return result

    def local_variable(self, type_id):
        """A variable of the function; all of them stand at its start."""
        pointer = self.pointer("Function", type_id)
        result = self.new_id()
        self._variables.append(_instruction("Variable", pointer, result, STORAGE_CLASS["Function"]))
        return result

    def value(self, op, type_id, *operands):
        """Appends an instruction that has a result, and gives its id."""
        result = self.new_id()
        self.code.append(_instruction(op, type_id, result, *operands))
        return result

    def named(self, op, type_id, result, *operands):
        """Appends an instruction whose result was named before, as a loop's first block must."""
        self.code.append(_instruction(op, type_id, result, *operands))

    def glsl(self, name, type_id, *operands):
        return self.value("ExtInst", type_id, self._glsl, GLSL[name], *operands)

    def effect(self, op, *operands):
        """Appends an instruction that has none."""
        self.code.append(_instruction(op, *operands))

    def finish(self, entry_name, local_size):
        """The whole module as bytes, little-endian; `code` is the body of its one function."""
        void = self.once("TypeVoid")
        function_type = self.once("TypeFunction", void)
        function = self.new_id()
        float_bits = sorted({key[1][0] for key in self._cache if key[0] == "TypeFloat"})
        if float_bits:
            # Drivers may else compute as if there were no NaN.
            self.capability("SignedZeroInfNanPreserve")
            self.processed(_OPTIONAL_NAN_PRESERVE)
        words = [MAGIC, VERSION_1_3, 0, self._next, 0]
        for name in self._capabilities:
            words += _instruction("Capability", CAPABILITY[name])
        for name in self._extensions:
            words += _instruction("Extension", *_string(name))
        words += _instruction("ExtInstImport", self._glsl, *_string("GLSL.std.450"))
        words += _instruction("MemoryModel", 0, 1)
        words += _instruction("EntryPoint", 5, function, *_string(entry_name), *self._interface)
        words += _instruction("ExecutionMode", function, _LOCAL_SIZE, *local_size)
        for bits in float_bits:
            words += _instruction("ExecutionMode", function, _SIGNED_ZERO_INF_NAN_PRESERVE, bits)
        sections = (self._names, self._processed, self._decorations, self._globals)
        for section in sections:
            for instruction in section:
                words += instruction
        words += _instruction("Function", void, function, 0, function_type)
        words += _instruction("Label", self.new_id())
        words[3] = self._next
        for instruction in self._variables:
            words += instruction
        for instruction in self.code:
            words += instruction
        words += _instruction("FunctionEnd")
        return struct.pack(f"<{len(words)}I", *words)


def _instruction(op, *operands):
    return [(len(operands) + 1) << 16 | OP[op], *operands]


def _string(text):
    data = text.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return struct.unpack(f"<{len(data) // 4}I", data)
