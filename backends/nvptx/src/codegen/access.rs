//! Loads and stores of a lane, as wide as the stated alignment allows.
//!
//! A plain access is an LLVM load or store. A masked one is inline PTX with a predicate: a
//! branch around each access would keep the assembler from having many in flight. One with a hint for caches
//! is inline PTX as well.

use exactile_core::ir::{Access, Cache, DType, Inst, Space, Value, op};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValue, BasicValueEnum, IntValue, PointerValue};

use super::Emitter;
use super::address::Addresses;
use super::value::Elements;
use crate::error::{Error, Result};

/// What an access is told about its memory.
struct Target {
    dtype: DType,
    space: &'static str,
    /// Nothing writes it while the kernel runs.
    constant: bool,
    align: u32,
    cache: Option<Cache>,
}

impl Target {
    /// The instruction of a load up to its width.
    fn load(&self) -> String {
        let space = self.space;
        let hint = |hint: &str| match self.constant {
            true => format!("ld.{space}.nc{hint}"),
            false => format!("ld.{space}{hint}"),
        };
        match self.cache {
            None | Some(Cache::WriteThrough) => hint(""),
            Some(Cache::SecondLevel) => hint(".cg"),
            Some(Cache::Streaming) => hint(".cs"),
            Some(Cache::Anew) => format!("ld.{space}.cv"),
            Some(Cache::EvictFirst) => hint(".L1::evict_first"),
            Some(Cache::EvictLast) => hint(".L1::evict_last"),
            Some(Cache::NoAllocate) => hint(".L1::no_allocate"),
            Some(Cache::Volatile) => format!("ld.volatile.{space}"),
        }
    }

    /// The instruction of a store up to its width.
    fn store(&self) -> String {
        let space = self.space;
        match self.cache {
            None | Some(Cache::Anew) => format!("st.{space}"),
            Some(Cache::SecondLevel) => format!("st.{space}.cg"),
            Some(Cache::Streaming) => format!("st.{space}.cs"),
            Some(Cache::WriteThrough) => format!("st.{space}.wt"),
            Some(Cache::EvictFirst) => format!("st.{space}.L1::evict_first"),
            Some(Cache::EvictLast) => format!("st.{space}.L1::evict_last"),
            Some(Cache::NoAllocate) => format!("st.{space}.L1::no_allocate"),
            Some(Cache::Volatile) => format!("st.volatile.{space}"),
        }
    }

    /// Whether a load may be left out, made again or made elsewhere.
    fn is_free(&self) -> bool {
        self.constant && !matches!(self.cache, Some(Cache::Anew | Cache::Volatile))
    }
}

/// One access of a wider one: some elements that one instruction moves.
struct Piece<'c> {
    /// An address that it may share with others.
    base: PointerValue<'c>,
    /// How many elements it is behind that.
    distance: i64,
    /// Which of several offsets it follows.
    at: usize,
    first: usize,
    count: usize,
}

impl<'c> Piece<'c> {
    /// Its mask, and what that is if it is known.
    fn mask(&self, masks: Option<&Elements<'c>>) -> Option<(IntValue<'c>, Option<bool>)> {
        let mask = masks?[self.at].into_int_value();
        Some((mask, constant_bool(mask)))
    }

    /// Bits of a register and number of registers that hold the piece.
    fn registers(&self, dtype: DType) -> (u32, u32) {
        let bytes = dtype.bytes() * self.count as u32;
        let word = if dtype.bytes() == 8 { 8 } else { bytes.min(4) };
        (word * 8, bytes / word)
    }
}

impl<'c> Emitter<'_, 'c> {
    /// The elements of a `lane_load`.
    pub(super) fn lane_load(&self, inst: Inst, op: &op::LaneLoad) -> Result<Elements<'c>> {
        let op::LaneLoad {
            base,
            offset,
            mask,
            other,
            align,
            cache,
        } = op;
        let target = self.target(*base, *align, *cache)?;
        let ty = self.func.ty(self.func.inst(inst).results[0]);
        let count = ty.shape.elements();
        let otherwise = match other {
            Some(other) => self.get(*other),
            None => vec![self.element_type(target.dtype).const_zero(); count],
        };
        let masks = mask.map(|mask| self.get(mask));
        let mut elements = Vec::with_capacity(count);
        for piece in self.pieces(&target, *base, *offset, count)? {
            let range = piece.first..piece.first + piece.count;
            elements.extend(match piece.mask(masks.as_ref()) {
                Some((_, Some(false))) => otherwise[range].to_vec(),
                None | Some((_, Some(true))) if cache.is_none() => {
                    self.plain_load(&target, &piece)?
                }
                None | Some((_, Some(true))) => {
                    self.ptx_load(&target, &piece, None, &otherwise[range])?
                }
                Some((mask, None)) => {
                    self.ptx_load(&target, &piece, Some(mask), &otherwise[range])?
                }
            });
        }
        Ok(elements)
    }

    /// Emits `lane_store`.
    pub(super) fn lane_store(&self, op: &op::LaneStore) -> Result<()> {
        let op::LaneStore {
            base,
            offset,
            value,
            mask,
            align,
            cache,
        } = op;
        let target = self.target(*base, *align, *cache)?;
        let elements = self.get(*value);
        let masks = mask.map(|mask| self.get(mask));
        for piece in self.pieces(&target, *base, *offset, elements.len())? {
            let stored = &elements[piece.first..piece.first + piece.count];
            match piece.mask(masks.as_ref()) {
                Some((_, Some(false))) => {}
                None | Some((_, Some(true))) if cache.is_none() => {
                    self.plain_store(&target, &piece, stored)?;
                }
                None | Some((_, Some(true))) => self.ptx_store(&target, &piece, None, stored)?,
                Some((mask, None)) => self.ptx_store(&target, &piece, Some(mask), stored)?,
            }
        }
        Ok(())
    }

    fn target(&self, base: Value, align: i64, cache: Option<Cache>) -> Result<Target> {
        let unsupported = || Error::Unsupported("access of scratch memory".to_string());
        let (dtype, space) = self.func.ty(base).pointee().ok_or_else(unsupported)?;
        let parameter = self.func.parameter_index(base);
        let constant = parameter.is_some_and(|index| self.func.parameters[index].access == Access::Read)
                // The launch before may still write it.
                && !self.begins_early();
        let space = match space {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Scratch => return Err(unsupported()),
        };
        let most = self.target.vector_bytes;
        let align = u32::try_from(align).unwrap_or(most).min(most);
        Ok(Target {
            dtype,
            space,
            constant,
            align: align.max(dtype.bytes()),
            cache,
        })
    }

    /// The elements from each offset on in pieces of at most the alignment.
    fn pieces(
        &self,
        target: &Target,
        base: Value,
        offset: Value,
        count: usize,
    ) -> Result<Vec<Piece<'c>>> {
        let pointer = self.values[base][0].into_pointer_value();
        let element = self.memory_type(target.dtype);
        let indices = self.indices(offset)?;
        let run = count / indices.len();
        let step = run.min((target.align / target.dtype.bytes()) as usize);
        let (mut pieces, mut known) = (Vec::new(), Addresses::default());
        for (at, &index) in indices.iter().enumerate() {
            let (base, distance) = self.common_address(&mut known, element, (pointer, index))?;
            for first in (0..run).step_by(step) {
                pieces.push(Piece {
                    base,
                    distance: distance.wrapping_add(first as i64),
                    at,
                    first: at * run + first,
                    count: step,
                });
            }
        }
        Ok(pieces)
    }

    /// A scalar index as `i64`.
    pub(super) fn index(&self, value: Value) -> Result<IntValue<'c>> {
        Ok(self.indices(value)?[0])
    }

    /// Indices as `i64`.
    pub(super) fn indices(&self, value: Value) -> Result<Vec<IntValue<'c>>> {
        let from = self.func.ty(value).dtype().unwrap_or(DType::I64);
        let indices = self.values[value].iter();
        indices
            .map(|index| self.resize(from, 64, index.into_int_value()))
            .collect()
    }

    fn address_of(&self, target: &Target, piece: &Piece<'c>) -> Result<PointerValue<'c>> {
        let element = self.memory_type(target.dtype);
        self.address_behind(element, (piece.base, piece.distance))
    }

    fn plain_load(&self, target: &Target, piece: &Piece<'c>) -> Result<Elements<'c>> {
        let element = self.memory_type(target.dtype);
        let ty = vector_type(element, piece.count)?;
        let address = self.address_of(target, piece)?;
        let loaded = self.builder.build_load(ty, address, "")?;
        if let Some(load) = loaded.as_instruction_value() {
            load.set_alignment(piece.count as u32 * target.dtype.bytes())?;
        }
        let elements = if let BasicValueEnum::VectorValue(vector) = loaded {
            self.unpack(vector)?
        } else {
            vec![loaded]
        };
        if target.dtype != DType::Bool {
            return Ok(elements);
        }
        elements
            .into_iter()
            .map(|byte| self.byte_to_bool(byte))
            .collect()
    }

    fn plain_store(
        &self,
        target: &Target,
        piece: &Piece<'c>,
        elements: &[BasicValueEnum<'c>],
    ) -> Result<()> {
        let mut stored = elements.to_vec();
        if target.dtype == DType::Bool {
            for element in &mut stored {
                *element = self.bits_of(DType::Bool, *element)?.into();
            }
        }
        let value = match stored[..] {
            [scalar] => scalar,
            _ => self.pack(&stored)?.into(),
        };
        let address = self.address_of(target, piece)?;
        let store = self.builder.build_store(address, value)?;
        store.set_alignment(piece.count as u32 * target.dtype.bytes())?;
        Ok(())
    }

    /// A load by PTX, where the mask holds if there is one.
    fn ptx_load(
        &self,
        target: &Target,
        piece: &Piece<'c>,
        mask: Option<IntValue<'c>>,
        otherwise: &[BasicValueEnum<'c>],
    ) -> Result<Elements<'c>> {
        let (bits, count) = piece.registers(target.dtype);
        let words = self.registers_of(target.dtype, bits, otherwise)?;
        let ty = words[0].get_type();
        let result: BasicTypeEnum<'c> = match count {
            1 => ty,
            _ => self
                .context
                .struct_type(&vec![ty; count as usize], false)
                .into(),
        };
        let (address, distance) = self.address_and_distance(target, piece)?;
        let text = format!(
            "{}{}{}b{bits} {}, [${count}{distance}];",
            predicate(mask, count + 1),
            target.load(),
            vector_suffix(count),
            registers(0, count),
        );
        let letter = register_letter(bits);
        let mut constraints = vec![format!("={letter}"); count as usize];
        constraints.push("l".to_string());
        let mut arguments = self.access_arguments(address, mask)?;
        if mask.is_some() {
            constraints.push("b".to_string());
            constraints.extend((0..count).map(|index| index.to_string()));
            arguments.extend(words.iter().map(|&word| BasicMetadataValueEnum::from(word)));
        }
        let effects = !target.is_free();
        if effects {
            constraints.push("~{memory}".to_string());
        }
        let call = self.inline_ptx(
            Some(result),
            text,
            constraints.join(","),
            &arguments,
            effects,
        )?;
        let loaded = call
            .try_as_basic_value()
            .basic()
            .ok_or_else(|| Error::Llvm("a masked load has no result".to_string()))?;
        let words = if let BasicValueEnum::StructValue(words) = loaded {
            (0..count)
                .map(|index| Ok(self.builder.build_extract_value(words, index, "")?))
                .collect::<Result<Elements<'c>>>()?
        } else {
            vec![loaded]
        };
        self.elements_of_registers(target.dtype, piece.count, &words)
    }

    /// A store by PTX, where the mask holds if there is one.
    fn ptx_store(
        &self,
        target: &Target,
        piece: &Piece<'c>,
        mask: Option<IntValue<'c>>,
        elements: &[BasicValueEnum<'c>],
    ) -> Result<()> {
        let (bits, count) = piece.registers(target.dtype);
        let words = self.registers_of(target.dtype, bits, elements)?;
        let (address, distance) = self.address_and_distance(target, piece)?;
        let mut arguments = self.access_arguments(address, mask)?;
        let text = format!(
            "{}{}{}b{bits} [$0{distance}], {};",
            predicate(mask, 1),
            target.store(),
            vector_suffix(count),
            registers(arguments.len() as u32, count),
        );
        let mut constraints = vec!["l".to_string()];
        constraints.extend(mask.map(|_| "b".to_string()));
        constraints.extend(vec![register_letter(bits).to_string(); count as usize]);
        constraints.push("~{memory}".to_string());
        arguments.extend(words.iter().map(|&word| BasicMetadataValueEnum::from(word)));
        self.inline_ptx(None, text, constraints.join(","), &arguments, true)?;
        Ok(())
    }

    /// An address and what PTX adds to it, which takes 32 bits.
    fn address_and_distance(
        &self,
        target: &Target,
        piece: &Piece<'c>,
    ) -> Result<(PointerValue<'c>, String)> {
        let bytes = piece.distance.checked_mul(i64::from(target.dtype.bytes()));
        match bytes.and_then(|bytes| i32::try_from(bytes).ok()) {
            Some(0) => Ok((piece.base, String::new())),
            Some(bytes) => Ok((piece.base, format!("+{bytes}"))),
            None => Ok((self.address_of(target, piece)?, String::new())),
        }
    }

    fn access_arguments(
        &self,
        address: PointerValue<'c>,
        mask: Option<IntValue<'c>>,
    ) -> Result<Vec<BasicMetadataValueEnum<'c>>> {
        let wide = self.context.i64_type();
        let address = self.builder.build_ptr_to_int(address, wide, "")?;
        let mut arguments = vec![address.into()];
        arguments.extend(mask.map(BasicMetadataValueEnum::from));
        Ok(arguments)
    }

    /// The elements in registers of `bits`; a byte travels in a register of 16 bits.
    fn registers_of(
        &self,
        dtype: DType,
        bits: u32,
        elements: &[BasicValueEnum<'c>],
    ) -> Result<Elements<'c>> {
        let mut raw = Vec::with_capacity(elements.len());
        for &element in elements {
            raw.push(self.bits_of(dtype, element)?.into());
        }
        if bits == 8 {
            let wide = self.context.i16_type();
            let byte = BasicValueEnum::into_int_value(raw[0]);
            return Ok(vec![
                self.builder.build_int_z_extend(byte, wide, "")?.into(),
            ]);
        }
        let count = dtype.bytes() * 8 * elements.len() as u32 / bits;
        let target = self.int_type(bits).vec_type(count);
        let packed = self.pack(&raw)?;
        let words = self.builder.build_bit_cast(packed, target, "")?;
        self.unpack(words.into_vector_value())
    }

    fn elements_of_registers(
        &self,
        dtype: DType,
        count: usize,
        words: &[BasicValueEnum<'c>],
    ) -> Result<Elements<'c>> {
        let total = dtype.bytes() * count as u32;
        let raw = if total == 1 {
            let byte = self.context.i8_type();
            vec![
                self.builder
                    .build_int_truncate(words[0].into_int_value(), byte, "")?
                    .into(),
            ]
        } else {
            let target = self.int_type(dtype.bytes() * 8).vec_type(count as u32);
            let packed = self.pack(words)?;
            let elements = self.builder.build_bit_cast(packed, target, "")?;
            self.unpack(elements.into_vector_value())?
        };
        raw.into_iter()
            .map(|bits| self.element_of_bits(dtype, bits))
            .collect()
    }
}

fn constant_bool(value: IntValue<'_>) -> Option<bool> {
    value.get_zero_extended_constant().map(|value| value != 0)
}

fn vector_type(element: BasicTypeEnum<'_>, count: usize) -> Result<BasicTypeEnum<'_>> {
    match (element, count) {
        (element, 1) => Ok(element),
        (BasicTypeEnum::FloatType(ty), _) => Ok(ty.vec_type(count as u32).into()),
        (BasicTypeEnum::IntType(ty), _) => Ok(ty.vec_type(count as u32).into()),
        (other, _) => Err(Error::Llvm(format!("no vector of `{other}`"))),
    }
}

/// What makes an instruction one of a mask, which is operand `at`.
fn predicate(mask: Option<IntValue<'_>>, at: u32) -> String {
    mask.map_or_else(String::new, |_| format!("@${at} "))
}

fn vector_suffix(count: u32) -> String {
    match count {
        1 => ".".to_string(),
        _ => format!(".v{count}."),
    }
}

fn registers(first: u32, count: u32) -> String {
    match count {
        1 => format!("${first}"),
        _ => {
            let names: Vec<String> = (first..first + count)
                .map(|index| format!("${index}"))
                .collect();
            format!("{{{}}}", names.join(", "))
        }
    }
}

/// The constraint of a PTX register.
fn register_letter(bits: u32) -> &'static str {
    match bits {
        8 | 16 => "h",
        32 => "r",
        _ => "l",
    }
}
