//! The side that is a real Windows. The one file that only compiles there.

use windows_registry::{LOCAL_MACHINE, Type};

use super::{Host, ReadError, Value};

/// `HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND)`: no such key, or no such value in it.
const NOT_FOUND: u32 = 0x8007_0002;

/// The host that this process runs on. The agent is a 64-bit program, so it sees the 64-bit registry.
pub struct Windows;

impl Host for Windows {
    fn registry(&self, key: &str, name: &str) -> Result<Value, ReadError> {
        read(key, name).map_err(|error| {
            if error.code().0.cast_unsigned() == NOT_FOUND {
                return ReadError::Missing;
            }
            // Some codes have no message on some editions; the code alone says enough.
            match error.message() {
                text if text.is_empty() => ReadError::Refused(error.code().to_string()),
                text => ReadError::Refused(text),
            }
        })
    }
}

fn read(key: &str, name: &str) -> windows_registry::Result<Value> {
    let value = LOCAL_MACHINE.open(key)?.get_value(name)?;
    Ok(match value.ty() {
        Type::String | Type::ExpandString => Value::Text(value.try_into()?),
        Type::U32 | Type::U64 => Value::Number(value.try_into()?),
        Type::MultiString => Value::Other("REG_MULTI_SZ".to_owned()),
        Type::Bytes => Value::Other("REG_BINARY".to_owned()),
        Type::Other(number) => Value::Other(format!("registry type {number}")),
    })
}
